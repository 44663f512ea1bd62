// What pointers and keys do to the picture.

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
