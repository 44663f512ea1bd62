// One event is shown, one of many is found, and the same is shown as a table.

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
