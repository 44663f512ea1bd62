// The same events as a table, a page at a time: what a screen reader, a search in the page and a printer read best.

const PAGE_EVENTS = 200;

function fillTable(events, page, root) {
  const pages = Math.max(1, Math.ceil(events.length / PAGE_EVENTS));
  const at = Math.min(Math.max(0, page), pages - 1);
  const first = at * PAGE_EVENTS;
  const shown = events.slice(first, first + PAGE_EVENTS);
  byId("table-caption").textContent = `Events of ${titleOf(root)} and the runs beneath it, in order of time`;
  byId("page-at").textContent = events.length ? `${first + 1} to ${first + shown.length} of ${events.length.toLocaleString("en")}` : "no events";
  byId("page-before").disabled = at === 0;
  byId("page-after").disabled = at === pages - 1;
  byId("table-tools").hidden = false;
  byId("table-rows").replaceChildren(...shown.map((event) => {
    const open = element("button", { type: "button", class: "event", text: plain(event.type), onclick: () => select(event) });
    const row = element("tr", {},
      element("td", { class: "time", text: event.dated ? dateTime(event.at) : "unknown" }),
      element("td", { class: "run", text: event.run === root ? titleOf(event.run) : shortName(event.run) }),
      element("td", { class: "seq", text: String(event.seq) }),
      element("th", { scope: "row" }, element("span", { class: `swatch ${event.mark.tone}`, "aria-hidden": "true" }), open),
      element("td", { class: "what", text: gist(event, 200) }));
    return row;
  }));
  return at;
}
