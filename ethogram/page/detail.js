// Everything that one event says. Texts are written as text, whatever they hold.

function fillDetail(event, position) {
  byId("detail-type").textContent = plain(event.type);
  const body = byId("detail-body");
  const start = startOf(event.run.root);
  const facts = [
    ["When", event.dated ? `${dateTime(event.at)} UTC` : "unknown: it stands where the event before it does"],
    ["After the start", duration(Math.max(0, event.at - start))],
    ["Run", plain(event.run.id) || "(no id)"],
    ["Event", `${event.seq} of ${event.run.events.length}${position ? `; ${position.index + 1} of ${position.of} in this lane` : ""}`],
  ];
  const list = element("dl", { class: "facts" });
  for (const [name, text] of facts) list.append(element("dt", { text: name }), element("dd", { text }));
  const stamps = element("dl", { class: "facts stamps" });
  for (const [name, text] of [["capturedAt", event.capturedAt], ["ts", event.ts]]) {
    if (text !== null) stamps.append(element("dt", { text: name }), element("dd", { text: plain(text) }));
  }
  body.replaceChildren(list, element("h3", { text: "Payload" }), valueElement(event.payload, 0), element("h3", { text: "Stamps" }), stamps);
  body.scrollTop = 0;
}

const FOLD_DEEPER_THAN = 1;

function valueElement(value, depth) {
  if (value === null || typeof value !== "object") return scalarElement(value);
  const entries = Array.isArray(value) ? value.map((item, index) => [String(index), item]) : Object.entries(value);
  if (!entries.length) return element("span", { class: "empty", text: Array.isArray(value) ? "[ ]" : "{ }" });
  // Plain fields first: what an event says is in them, and objects take room.
  const sorted = Array.isArray(value) ? entries : [...entries.filter(([, each]) => !isObject(each)), ...entries.filter(([, each]) => isObject(each))];
  const list = element("dl", { class: "value" });
  for (const [key, item] of sorted) {
    const name = plain(key);
    if (!isObject(item)) {
      list.append(element("dt", { text: name }), element("dd", {}, valueElement(item, depth + 1)));
      continue;
    }
    const size = Object.keys(item).length;
    const details = element("details", {}, element("summary", {}, name, element("small", { text: ` ${size}` })));
    details.open = depth < FOLD_DEEPER_THAN && size <= 8;
    // A payload may hold a hundred levels: what is closed is made when it is opened.
    const fill = () => { if (details.open && details.children.length === 1) details.append(valueElement(item, depth + 1)); };
    details.addEventListener("toggle", fill);
    fill();
    list.append(element("dd", { class: "whole" }, details));
  }
  return list;
}

function isObject(value) {
  return value !== null && typeof value === "object";
}

function scalarElement(value) {
  if (typeof value === "string") {
    const text = plain(value);
    return element("span", { class: text.length > 60 || text.includes("\n") ? "text long" : "text", text: text === "" ? "(empty)" : text });
  }
  const words = typeof value === "number" ? value.toLocaleString("en", { maximumFractionDigits: 20 }) : String(value);
  return element("span", { class: `scalar ${typeof value}`, text: words });
}
