// What a person does with the page, and what is shown then.

const view = {
  root: null, rows: [], events: [], scale: null, selected: null, hits: null, hitList: [], query: "",
  fold: false, foldChosen: false, openAll: null, opened: new Map(), top: 0, width: 0, height: 0, narrow: false, labelWidth: 0,
  pauses: [], human: [], colours: {}, tab: "plot", page: 0, context: null, printing: false, silent: false,
};

const LABEL_WIDTH = 216;
const NARROW = 700;
const MOST_ROOTS = 400;
const PRINT_WIDTH = 700;     // what an upright sheet holds
const PRINT_HEIGHT = 12000;  // what a browser lets a canvas be
const KEY_ZOOM = 1.5;

// ---- Which tree, and its layout -------------------------------------------------------------------------------

function chooseRoot(root) {
  view.root = root;
  view.openAll = null;
  view.opened.clear();
  view.selected = null;
  view.foldChosen = false;
  byId("scroller").scrollTop = 0;
  refreshTree(true);
  hideDetail();
  fillList();
  document.title = `${titleOf(root)} · ethogram`;
}

// Works the tree out anew: after it was chosen, and after events came.
function refreshTree(whole) {
  const root = view.root;
  if (!root) return;
  const before = view.scale;
  view.events = treeEvents(root);
  view.pauses = pausesOf(view.events);
  view.human = view.events.filter((event) => event.mark.tone === "human" && event.mark.landmark);
  const times = view.events.map((event) => event.at);
  const [from, to] = spanOf(root);
  // A tree that mostly waited is not readable with its waiting drawn to scale.
  const quiet = quietTimes(times, busyTimes(root), from, to);
  if (!view.foldChosen) view.fold = quiet.reduce((sum, [a, b]) => sum + b - a, 0) > 0.35 * (to - from);
  byId("fold-time").disabled = !quiet.length;
  view.scale = new TimeScale(from, to, view.fold ? quiet : []);
  const wasWhole = !before || before.view[1] - before.view[0] > 0.9999;
  if (!whole && !wasWhole) view.scale.show(view.scale.unitOf(before.timeOf(before.view[0])), view.scale.unitOf(before.timeOf(before.view[1])));
  byId("fold-time").setAttribute("aria-pressed", String(view.fold));
  layOut();
  fillHead();
  if (view.query) search(view.query);
}

function isOpen(run) {
  if (view.opened.has(run)) return view.opened.get(run);
  if (view.openAll !== null) return view.openAll || run === view.root;
  return run === view.root || fullRows(view.root) <= OPEN_ROWS;
}

function layOut() {
  if (!view.root) return;
  view.narrow = !view.printing && byId("main").clientWidth < NARROW;
  view.rows = rowsOf(view.root, isOpen, view.narrow);
  byId("open-all").setAttribute("aria-pressed", String(view.rows.every((row) => row.kind !== "run" || row.open || !row.foldable)));
  byId("rows").style.height = `${view.rows.total}px`;
  if (view.selected) view.selected.row = rowOfEvent(view.selected.event);
  measure();
  drawn.rows = null;
  draw();
}

// The row in which an event has its mark; the row of its run where its lanes are closed.
function rowOfEvent(event, preferred = null) {
  if (preferred && preferred.events.includes(event)) return view.rows.find((row) => row.key === preferred.key) || null;
  return view.rows.find((row) => row.run === event.run && row.kind !== "landmarks" && row.kind !== "rounds" && (row.kind === "lane" ? row.type === event.type : row.events.includes(event))) || null;
}

function measure() {
  const frame = byId("frame");
  view.labelWidth = view.narrow ? 0 : LABEL_WIDTH;
  const width = view.printing ? PRINT_WIDTH : byId("scroller").clientWidth;
  const height = view.printing ? Math.min(AXIS_HEIGHT + view.rows.total, PRINT_HEIGHT) : frame.clientHeight;
  const canvas = byId("plot");
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  view.context = canvas.getContext("2d");
  view.context.setTransform(ratio, 0, 0, ratio, 0, 0);
  Object.assign(view, { width, height });
  if (view.scale) Object.assign(view.scale, { left: view.labelWidth + 16, width: Math.max(60, width - view.labelWidth - 42) });
}

// ---- Drawing, once a frame ------------------------------------------------------------------------------------

const drawn = { waiting: false, rows: null };

function draw() {
  if (drawn.waiting) return;
  drawn.waiting = true;
  requestAnimationFrame(() => {
    drawn.waiting = false;
    drawNow();
  });
}

function drawNow() {
  if (!view.scale || view.tab !== "plot") return;
  view.top = view.printing ? 0 : byId("scroller").scrollTop;
  drawPlot(view.context, view);
  drawLabels();
  const map = byId("map");
  const ratio = window.devicePixelRatio || 1;
  const width = map.clientWidth, height = 36;
  if (map.width !== Math.round(width * ratio)) {
    map.width = Math.round(width * ratio);
    map.height = height * ratio;
  }
  const context = map.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  drawMap(context, view, view.events, width, height);
}

// The rows in view as elements: what a pointer opens and a screen reader reads.
function drawLabels() {
  const from = view.top - 200, to = view.top + view.height + 200;
  const first = firstIndex(view.rows, (row) => row.y + row.height > from);
  const behind = firstIndex(view.rows, (row) => row.y >= to);
  const focused = view.focusRow ? view.rows.findIndex((row) => row.key === view.focusRow) : -1;
  const state = `${first} ${behind} ${focused} ${view.narrow}`;
  if (drawn.rows === state) return;
  drawn.rows = state;
  const held = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.key : undefined;
  const wanted = view.rows.slice(first, behind);
  if (focused >= 0 && (focused < first || focused >= behind)) wanted.push(view.rows[focused]);
  byId("rows").replaceChildren(...wanted.map(labelOf));
  if (held !== undefined) {
    const again = [...byId("rows").children].find((each) => each.dataset.key === held);
    if (again) again.focus({ preventScroll: true });
  }
}

function labelOf(row) {
  const label = element("div", {
    class: `row ${row.kind}`, role: "treeitem", id: `row-${row.index}`,
    "aria-level": row.depth + 1, "aria-label": sayRow(row), "aria-posinset": row.index + 1, "aria-setsize": view.rows.length,
    tabindex: row.key === (view.focusRow || view.rows[0].key) ? "0" : "-1",
  });
  label.dataset.key = row.key;
  label.style.top = `${row.y}px`;
  label.style.height = `${row.height}px`;
  const indent = Math.min(row.depth, 8) * (view.narrow ? 6 : 12);
  const name = element("span", { class: "name" });
  name.style.paddingLeft = `${indent + 8}px`;
  if (row.kind === "run") {
    if (row.foldable) label.setAttribute("aria-expanded", String(row.open));
    name.append(element("span", { class: "twist", "aria-hidden": "true", text: row.foldable ? (row.open ? "▾" : "▸") : "·" }));
  } else name.append(element("span", { class: `swatch ${row.kind === "lane" ? laneTone(row.type) : "none"}`, "aria-hidden": "true" }));
  name.append(element("span", { class: "words", text: plain(row.label) }));
  if (row.kind === "lane" && row.events.length > 1) name.append(element("span", { class: "count", text: count(row.events.length) }));
  name.setAttribute("title", row.kind === "run" ? plain(row.run.id) : plain(row.label));
  label.append(name);
  return label;
}

function sayRow(row) {
  if (row.kind === "rounds") return `Rounds: ${row.rounds.map(({ round, from, to }) => `round ${round}, ${duration(to - from)}`).join("; ")}`;
  const many = `${row.events.length} event${row.events.length === 1 ? "" : "s"}`;
  if (row.kind === "landmarks") return `Landmarks: gates, reviews, pauses and interventions; ${many}`;
  if (row.kind === "lane") return `${plain(row.label)}, ${many}`;
  const [from, to] = ownSpan(row.run);
  const { kind, actor } = row.run.overview;
  return `Run ${plain(row.run.id)}${kind ? `, ${oneLine(kind, 40)}` : ""}${actor ? ` by ${oneLine(actor, 40)}` : ""}, ${outcomeOf(row.run)}, ${to >= from ? duration(to - from) : "no events"}, ${row.run.events.length} events`;
}

// ---- The line of facts -----------------------------------------------------------------------------------------

function fillHead() {
  const root = view.root, overview = root.overview;
  byId("run-name").textContent = titleOf(root);
  byId("run-name").title = plain(root.id);
  const outcome = byId("run-outcome");
  outcome.textContent = outcomeOf(root);
  outcome.className = `badge ${outcomeTone(root)}`;
  const [from, to] = spanOf(root);
  const says = [overview.kind, overview.actor, overview.harness, overview.model].filter(Boolean).map((each) => oneLine(each, 60));
  byId("run-says").textContent = `${says.join(" · ")}${says.length ? " · " : ""}${root.events.length ? `${dateTime(from)} UTC · ${duration(to - from)}` : "no events"}`;
  const glance = glanceOf(root);
  const fact = (number, words, tone) => element("li", { class: tone || "" }, element("b", { text: number }), ` ${words}`);
  const facts = [fact(glance.events.toLocaleString("en"), glance.runs > 1 ? `events in ${glance.runs.toLocaleString("en")} runs` : "events")];
  if (glance.rounds.size) facts.push(fact(glance.rounds.size, glance.rounds.size === 1 ? "round" : "rounds"));
  const pair = ([good, bad], name, yes, no) => {
    if (!good && !bad) return;
    const item = element("li", { "aria-label": `${name}: ${good} ${yes}, ${bad} ${no}` });
    if (good) item.append(element("b", { class: "good", text: `✓ ${good}` }), " ");
    if (bad) item.append(element("b", { class: "bad", text: `✕ ${bad}` }), " ");
    item.append(name);
    facts.push(item);
  };
  pair(glance.gates, "gates", "passed", "failed");
  pair(glance.reviews, "reviews", "approved", "asked for changes");
  if (glance.pauses) facts.push(fact(`‖ ${glance.pauses}`, glance.pauses === 1 ? "pause" : "pauses", "warn"));
  if (glance.human) facts.push(fact(`◆ ${glance.human}`, glance.human === 1 ? "human intervention" : "human interventions", "human"));
  if (glance.warnings) facts.push(fact(`▲ ${glance.warnings}`, glance.warnings === 1 ? "warning" : "warnings", "warn"));
  if (glance.tokens !== null) facts.push(fact(count(glance.tokens), "tokens"));
  if (glance.cost !== null) facts.push(fact(`${glance.atLeast ? "≥ " : ""}$${glance.cost.toFixed(4)}`, "cost"));
  byId("glance").replaceChildren(...facts);
  const notices = [];
  walk(root, (run) => { if (run.overview.fault) notices.push(`${plain(run.id)}: ${plain(run.overview.fault)}`); });
  if (overview.parentRunId !== undefined && !root.parent) notices.push(`Its parent is not here: ${oneLine(overview.parentRunId, 80)}`);
  if (state.cut !== null) notices.push(`Texts longer than ${state.cut} characters were cut to keep this page small; "ethogram show --full" prints them whole.`);
  byId("notice").hidden = !notices.length;
  byId("notice").textContent = notices.join(" · ");
}

function fillList() {
  const wanted = byId("list-filter").value.trim().toLowerCase();
  const fitting = state.roots.filter((root) => {
    if (!wanted) return true;
    let fits = false;
    walk(root, (run) => { fits ||= `${run.id} ${run.overview.kind} ${run.overview.actor} ${run.overview.model} ${outcomeOf(run)}`.toLowerCase().includes(wanted); });
    return fits;
  });
  const hitsIn = new Map();
  if (view.query) for (const event of allHits()) hitsIn.set(event.run.root, (hitsIn.get(event.run.root) || 0) + 1);
  const sorted = view.query ? fitting.slice().sort((a, b) => (hitsIn.get(b) || 0) - (hitsIn.get(a) || 0)) : fitting;
  const shown = sorted.slice(0, MOST_ROOTS);
  if (view.root && fitting.includes(view.root) && !shown.includes(view.root)) shown.push(view.root);
  byId("list-count").textContent = `${fitting.length.toLocaleString("en")} ${fitting.length === 1 ? "run" : "runs"}${fitting.length > MOST_ROOTS ? `, ${MOST_ROOTS} shown: filter to see others` : ""}`;
  byId("roots").replaceChildren(...shown.map((root) => {
    let runs = 0, events = 0;
    walk(root, (run) => { runs += 1; events += run.events.length; });
    const [from, to] = spanOf(root);
    const hits = hitsIn.get(root);
    const facts = [outcomeOf(root), root.events.length ? duration(to - from) : null, `${count(events)} events`, runs > 1 ? `${runs} runs` : null];
    const day = root.events.length ? `${dateTime(from).slice(5, 16)} · ` : "";
    return element("li", {}, element("button", { type: "button", "aria-current": root === view.root ? "true" : null, title: plain(root.id), onclick: () => { chooseRoot(root); closeList(); } },
      element("span", { class: `dot ${outcomeTone(root)}`, "aria-hidden": "true" }),
      element("span", { class: "who", text: titleOf(root) }),
      element("span", { class: "facts", text: `${hits ? `${hits} found · ` : ""}${day}${facts.filter(Boolean).join(" · ")}` })));
  }));
}

function closeList() {
  document.body.classList.remove("list-open");
  byId("list-toggle").setAttribute("aria-expanded", "false");
}

// ---- One event ---------------------------------------------------------------------------------------------------

function select(event, row = null, { focus = false } = {}) {
  if (event.run.root !== view.root) chooseRoot(event.run.root);
  let at = rowOfEvent(event, row);
  if (!at) {
    view.opened.set(event.run, true);
    layOut();
    at = rowOfEvent(event);
  }
  view.selected = { event, row: at };
  if (at) {
    view.focusRow = at.key;
    showRow(at);
  }
  const shown = byId("detail").hidden;
  byId("detail").hidden = false;
  document.body.classList.add("detail-open");
  const index = at ? at.events.indexOf(event) : -1;
  fillDetail(event, index < 0 ? null : { index, of: at.events.length });
  byId("detail-before").disabled = index <= 0;
  byId("detail-after").disabled = index < 0 || index >= at.events.length - 1;
  byId("said").textContent = `${plain(event.type)}, ${event.dated ? dateTime(event.at) : "time unknown"}: ${gist(event)}`;
  if (shown) layOut();
  showTime(event.at);
  drawn.rows = null;
  drawNow();
  if (focus && at) focusRow(at);
}

function hideDetail() {
  if (byId("detail").hidden) return;
  byId("detail").hidden = true;
  document.body.classList.remove("detail-open");
  view.selected = null;
  layOut();
}

function showRow(row) {
  const scroller = byId("scroller");
  if (row.y < scroller.scrollTop) scroller.scrollTop = Math.max(0, row.y - 40);
  else if (row.y + row.height > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = row.y + row.height - scroller.clientHeight + 40;
}

function showTime(at) {
  const [a, b] = view.scale.view;
  const unit = view.scale.unitOf(at);
  if (unit < a || unit > b) view.scale.show(unit - (b - a) / 2, unit + (b - a) / 2);
}

function focusRow(row) {
  view.focusRow = row.key;
  drawn.rows = null;
  drawNow();
  const label = [...byId("rows").children].find((each) => each.dataset.key === row.key);
  if (label) label.focus({ preventScroll: true });
}

function step(by) {
  const { selected } = view;
  if (!selected || !selected.row) return;
  const next = selected.row.events[selected.row.events.indexOf(selected.event) + by];
  if (next) select(next, selected.row);
}

// ---- Search ------------------------------------------------------------------------------------------------------

function allHits() {
  const found = [];
  for (const run of state.runs.values()) {
    for (const event of run.events) if (haystackOf(event).includes(view.query)) found.push(event);
  }
  return found;
}

function search(text) {
  view.query = text.trim().toLowerCase();
  view.hitList = view.query ? view.events.filter((event) => haystackOf(event).includes(view.query)) : [];
  view.hits = view.query ? new Set(view.hitList) : null;
  const elsewhere = view.query ? allHits().length - view.hitList.length : 0;
  byId("hits").textContent = view.query ? `${view.hitList.length.toLocaleString("en")} here${elsewhere ? `, ${elsewhere.toLocaleString("en")} in other runs` : ""}` : "";
  document.body.classList.toggle("searching", Boolean(view.query));
  if (view.tab === "table") showTable(0);
  draw();
}

function nextHit(by) {
  if (!view.hitList.length) return;
  const at = view.selected ? view.hitList.indexOf(view.selected.event) : -1;
  const index = at < 0 ? (by > 0 ? 0 : view.hitList.length - 1) : (at + by + view.hitList.length) % view.hitList.length;
  select(view.hitList[index]);
}

// ---- Table and picture -------------------------------------------------------------------------------------------

function showTab(tab) {
  view.tab = tab;
  byId("plot-view").hidden = tab !== "plot";
  byId("table-view").hidden = tab !== "table";
  byId("show-plot").setAttribute("aria-pressed", String(tab === "plot"));
  byId("show-table").setAttribute("aria-pressed", String(tab === "table"));
  document.body.classList.toggle("table-open", tab === "table");
  if (tab === "table") showTable(view.page);
  else layOut();
}

function showTable(page) {
  view.page = fillTable(view.query ? view.hitList : view.events, page, view.root);
  byId("table-scroll").scrollTop = 0;
}

// ---- Pointer and keys --------------------------------------------------------------------------------------------

function eventAt(x, y) {
  const at = y - AXIS_HEIGHT + view.top;
  const row = view.rows[firstIndex(view.rows, (each) => each.y + each.height > at)];
  if (!row || y < AXIS_HEIGHT || x < view.labelWidth || !row.events.length) return { row: row || null, event: null };
  const after = firstIndex(row.events, (event) => view.scale.x(event.at) >= x);
  let best = null, near = 10;
  for (let index = Math.max(0, after - 2); index < Math.min(row.events.length, after + 2); index++) {
    const apart = Math.abs(view.scale.x(row.events[index].at) - x);
    if (apart <= near) [best, near] = [row.events[index], apart];
  }
  return { row, event: best };
}

function placeIn(pointer) {
  const box = byId("frame").getBoundingClientRect();
  return [pointer.clientX - box.left, pointer.clientY - box.top];
}

function hover(pointer) {
  const tip = byId("tip");
  const [x, y] = placeIn(pointer);
  const { row, event } = eventAt(x, y);
  const stretch = !event && row && row.stretches ? row.stretches.find(({ opening, closing }) => view.scale.x(opening.at) <= x && x <= view.scale.x(closing.at)) : null;
  byId("scroller").style.cursor = event ? "pointer" : "";
  if (!event && !stretch) {
    tip.hidden = true;
    return;
  }
  const together = event ? row.events.filter((each) => Math.abs(view.scale.x(each.at) - view.scale.x(event.at)) < 3) : [];
  const lines = together.length > 1
    ? [`${together.length} events here`, ...together.slice(0, 6).map((each) => `${dateTime(each.at).slice(11)}  ${row.kind === "lane" ? "" : `${plain(each.type)}: `}${gist(each, 90)}`), together.length > 6 ? "…" : ""]
    : event
      ? [plain(event.type), gist(event, 160), event.dated ? `${dateTime(event.at).slice(11)} · ${duration(Math.max(0, event.at - startOf(view.root)))} after the start` : "time unknown"]
      : [plain(row.label), `${duration(stretch.closing.at - stretch.opening.at)}, until ${plain(stretch.closing.type)}`];
  tip.replaceChildren(...lines.filter(Boolean).map((text, index) => element(index ? "div" : "b", { text })));
  tip.hidden = false;
  const frame = byId("plot-view").getBoundingClientRect();
  const wide = tip.offsetWidth, tall = tip.offsetHeight;
  const left = pointer.clientX - frame.left, top = pointer.clientY - frame.top;
  tip.style.left = `${Math.max(4, Math.min(left + 14, frame.width - wide - 4))}px`;
  tip.style.top = `${top + tall + 22 > frame.height ? top - tall - 12 : top + 18}px`;
}

function watchPointer() {
  const scroller = byId("scroller");
  const pointers = new Map();
  let moved = 0, apart = 0;
  scroller.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.clientX - scroller.getBoundingClientRect().left > scroller.clientWidth) return;
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    moved = 0;
    apart = spread(pointers);
  });
  scroller.addEventListener("pointermove", (event) => {
    const last = pointers.get(event.pointerId);
    if (!last) {
      if (event.pointerType === "mouse") hover(event);
      return;
    }
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    const by = event.clientX - last[0];
    moved += Math.abs(by) + Math.abs(event.clientY - last[1]);
    if (pointers.size === 2) {
      const now = spread(pointers);
      if (apart && now) view.scale.zoom(apart / now, middleX(pointers) - byId("frame").getBoundingClientRect().left);
      apart = now;
    } else if (moved > 4) {
      scroller.setPointerCapture(event.pointerId);
      view.scale.pan(-by);
      byId("tip").hidden = true;
    }
    draw();
  });
  for (const name of ["pointerup", "pointercancel"]) {
    scroller.addEventListener(name, (event) => {
      if (pointers.delete(event.pointerId) && name === "pointerup" && moved <= 4) click(event);
    });
  }
  scroller.addEventListener("pointerleave", () => { byId("tip").hidden = true; });
  scroller.addEventListener("scroll", () => { byId("tip").hidden = true; draw(); }, { passive: true });
  scroller.addEventListener("wheel", (event) => {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : event.shiftKey ? event.deltaY : 0;
    if (event.ctrlKey || event.metaKey || event.altKey) view.scale.zoom(Math.exp(event.deltaY * 0.0025), placeIn(event)[0]);
    else if (sideways) view.scale.pan(sideways);
    else return;
    event.preventDefault();
    draw();
  }, { passive: false });
  const map = byId("map");
  const toMap = (event) => {
    const box = map.getBoundingClientRect();
    const [a, b] = view.scale.view;
    const unit = (event.clientX - box.left) / box.width;
    const length = b - a > 0.9999 ? 0.2 : b - a;
    view.scale.show(unit - length / 2, unit + length / 2);
    draw();
  };
  map.addEventListener("pointerdown", (event) => { map.setPointerCapture(event.pointerId); toMap(event); });
  map.addEventListener("pointermove", (event) => { if (event.buttons) toMap(event); });
  map.addEventListener("dblclick", fit);
}

function spread(pointers) {
  if (pointers.size !== 2) return 0;
  const [[ax, ay], [bx, by]] = [...pointers.values()];
  return Math.hypot(ax - bx, ay - by);
}

function middleX(pointers) {
  return [...pointers.values()].reduce((sum, [x]) => sum + x, 0) / pointers.size;
}

function click(pointer) {
  const [x, y] = placeIn(pointer);
  const { row, event } = eventAt(x, y);
  if (event) select(event, row, { focus: pointer.pointerType === "mouse" });
  else if (row && row.kind === "run" && (view.narrow || x < view.labelWidth)) toggle(row);
}

function toggle(row, open = !row.open) {
  if (!row.foldable || row.open === open) return;
  view.opened.set(row.run, open);
  layOut();
  focusRow(view.rows.find((each) => each.kind === "run" && each.run === row.run));
}

function fit() {
  view.scale.show(0, 1);
  draw();
}

function zoomBy(factor) {
  const x = view.selected ? view.scale.x(view.selected.event.at) : view.scale.left + view.scale.width / 2;
  view.scale.zoom(factor, x);
  draw();
}

function rowKeys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const index = view.rows.findIndex((row) => row.key === (document.activeElement.dataset.key ?? view.focusRow));
  const row = view.rows[index];
  if (!row) return;
  const selected = view.selected && row.events.includes(view.selected.event) ? row.events.indexOf(view.selected.event) : -1;
  const goTo = (next) => {
    if (!next) return;
    showRow(next);
    focusRow(next);
  };
  const actions = {
    ArrowDown: () => goTo(view.rows[index + 1]),
    ArrowUp: () => goTo(view.rows[index - 1]),
    PageDown: () => goTo(view.rows[Math.min(view.rows.length - 1, index + 12)]),
    PageUp: () => goTo(view.rows[Math.max(0, index - 12)]),
    ArrowRight: () => {
      if (row.kind === "run" && !row.open && row.foldable && selected < 0) toggle(row, true);
      else if (selected + 1 < row.events.length) select(row.events[selected + 1], row, { focus: true });
    },
    ArrowLeft: () => {
      if (selected > 0) select(row.events[selected - 1], row, { focus: true });
      else if (row.kind === "run" && row.open && selected < 0) toggle(row, false);
    },
    Home: () => row.events.length && select(row.events[0], row, { focus: true }),
    End: () => row.events.length && select(row.events[row.events.length - 1], row, { focus: true }),
    Enter: () => (row.kind === "run" && selected < 0 ? toggle(row) : selected < 0 ? row.events.length && select(row.events[0], row, { focus: true }) : byId("detail-type").focus()),
    " ": () => (row.kind === "run" ? toggle(row) : row.events.length && select(row.events[Math.max(0, selected)], row, { focus: true })),
  };
  if (!Object.hasOwn(actions, event.key)) return;
  event.preventDefault();
  actions[event.key]();
}

function watchKeys() {
  byId("rows").addEventListener("keydown", rowKeys);
  // A lane that is reached by the keyboard tells its first event, as a pointer over it would.
  byId("rows").addEventListener("focusin", (event) => {
    const row = view.rows.find((each) => each.key === event.target.dataset.key);
    if (!row) return;
    view.focusRow = row.key;
    for (const label of byId("rows").children) label.tabIndex = label === event.target ? 0 : -1;
    if (!view.silent && row.events.length && event.target.matches(":focus-visible") && !(view.selected && row.events.includes(view.selected.event))) {
      select(row.events[0], row);
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      if (document.activeElement === byId("search") && byId("search").value) {
        byId("search").value = "";
        search("");
      } else {
        const row = view.selected && view.selected.row;
        hideDetail();
        closeList();
        // Its lane has the focus again, without telling its event anew.
        view.silent = true;
        if (row) focusRow(view.rows.find((each) => each.key === row.key) || view.rows[0]);
        view.silent = false;
      }
      return;
    }
    if (event.target.matches("input")) return;
    if (event.key === "+" || event.key === "=") zoomBy(1 / KEY_ZOOM);
    else if (event.key === "-") zoomBy(KEY_ZOOM);
    else if (event.key === "0") fit();
    else if (event.key === "/") {
      byId("search").focus();
      event.preventDefault();
    }
  });
}

// ---- Controls ----------------------------------------------------------------------------------------------------

function watchControls() {
  const on = (id, name, act) => byId(id).addEventListener(name, act);
  on("zoom-in", "click", () => zoomBy(1 / KEY_ZOOM));
  on("zoom-out", "click", () => zoomBy(KEY_ZOOM));
  on("zoom-fit", "click", fit);
  on("fold-time", "click", () => {
    view.fold = !view.fold;
    view.foldChosen = true;
    refreshTree(true);
  });
  on("open-all", "click", () => {
    view.openAll = byId("open-all").getAttribute("aria-pressed") !== "true";
    view.opened.clear();
    layOut();
  });
  on("show-plot", "click", () => showTab("plot"));
  on("show-table", "click", () => showTab("table"));
  on("skip", "click", (event) => {
    event.preventDefault();
    showTab("table");
    byId("table-view").focus();
  });
  on("page-before", "click", () => showTable(view.page - 1));
  on("page-after", "click", () => showTable(view.page + 1));
  on("detail-close", "click", hideDetail);
  on("detail-before", "click", () => step(-1));
  on("detail-after", "click", () => step(1));
  on("search", "input", () => { search(byId("search").value); fillList(); });
  on("search", "keydown", (event) => { if (event.key === "Enter") nextHit(event.shiftKey ? -1 : 1); });
  on("hit-before", "click", () => nextHit(-1));
  on("hit-after", "click", () => nextHit(1));
  on("list-filter", "input", fillList);
  on("list-toggle", "click", () => {
    const open = document.body.classList.toggle("list-open");
    byId("list-toggle").setAttribute("aria-expanded", String(open));
    if (open) byId("list-filter").focus();
  });
  on("theme", "change", (event) => {
    document.documentElement.dataset.theme = event.target.value;
    recolour();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  new ResizeObserver(() => {
    if (view.narrow !== byId("main").clientWidth < NARROW) layOut();
    else {
      measure();
      draw();
    }
  }).observe(byId("frame"));
  addEventListener("beforeprint", () => {
    view.printing = true;
    document.documentElement.classList.add("printing");
    recolour();
    layOut();
    byId("frame").style.height = `${view.height}px`;
    drawNow();
  });
  addEventListener("afterprint", () => {
    view.printing = false;
    document.documentElement.classList.remove("printing");
    byId("frame").style.height = "";
    recolour();
    layOut();
  });
}

function recolour() {
  view.colours = readColours();
  draw();
  drawLegend();
}

function drawLegend() {
  const ratio = window.devicePixelRatio || 1;
  byId("legend-list").replaceChildren(...LEGEND.map(([shape, tone, words]) => {
    const canvas = element("canvas", { width: 20 * ratio, height: 20 * ratio, "aria-hidden": "true" });
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    drawMark(context, { shape, tone }, 10, 10, 7, view.colours);
    return element("li", {}, canvas, words);
  }));
}

// ---- Events that come while the page is open ---------------------------------------------------------------------

function followRuns() {
  const live = byId("live");
  live.hidden = false;
  const say = (words, tone) => { live.textContent = words; live.className = tone; };
  say("connecting", "plain");
  const source = new EventSource(state.live.events);
  source.onopen = () => say("live", "good");
  source.onerror = () => say("connection lost, trying again", "warn");
  source.addEventListener("reset", () => location.reload());
  source.addEventListener("event", (message) => {
    const { overview, root, row } = JSON.parse(message.data);
    let run = state.runs.get(overview.runId);
    const fresh = !run || run.overview.parentRunId !== overview.parentRunId;
    if (run) run.overview = { ...overview, withChildren: run.overview.withChildren };
    else run = addRun(overview);
    addEvent(run, row);
    if (fresh) arrange();
    if (root && state.runs.has(root.runId)) state.runs.get(root.runId).overview.withChildren = root.withChildren;
    pending.add(run);
    if (pending.size === 1) setTimeout(takePending, 100);
  });
}

const pending = new Set();

// Events come in bursts: the picture is worked out once for each burst.
function takePending() {
  const concerned = [...pending].some((run) => run.root === view.root);
  pending.clear();
  if (!view.root || !state.roots.includes(view.root)) {
    const root = view.root ? view.root.root : firstRoot();
    if (root) chooseRoot(root);
  } else if (concerned) refreshTree(false);
  fillList();
  if (view.tab === "table" && concerned) showTable(view.page);
}

// ---- Start ---------------------------------------------------------------------------------------------------------

// The tree that says most: one with nested runs before one without, then the one with the most events.
function firstRoot() {
  let best = null, most = -1;
  for (const root of state.roots) {
    let events = root.children.length ? 1e9 : 0;
    walk(root, (run) => { events += run.events.length; });
    if (events > most) [best, most] = [root, events];
  }
  return best;
}

function rootFromAddress() {
  const wanted = new URLSearchParams(location.hash.slice(1)).get("run");
  const run = wanted === null ? undefined : state.runs.get(wanted);
  return run ? run.root : null;
}

async function start() {
  takeContent(await readContent());
  view.colours = readColours();
  watchPointer();
  watchKeys();
  watchControls();
  drawLegend();
  const root = rootFromAddress() || firstRoot();
  document.body.classList.toggle("one-root", state.roots.length <= 1 && !state.live);
  if (root) chooseRoot(root);
  else {
    byId("run-name").textContent = "No runs";
    fillList();
  }
  addEventListener("hashchange", () => {
    const chosen = rootFromAddress();
    if (chosen) chooseRoot(chosen);
  });
  if (state.live) followRuns();
  drawNow();
  document.documentElement.dataset.ready = "true";
}

start();
