// What is shown: which tree, its rows and its scale, drawn once a frame.

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
