// Hits as a person wants to read them. Text of documents becomes text nodes only, never markup.

const COMMON = new Set(("a an and are as at be by did do does for from had has have he her his how in is it its of on or she " +
  "that the their them they this to was were what when where which who whom whose why will with").split(" "));
const WORD = /[\p{L}\p{N}]+/gu;
const SNIPPET = 300;

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function wordsOf(question) {
  const words = (question.toLowerCase().match(WORD) ?? []);
  const telling = words.filter((word) => word.length > 1 && !COMMON.has(word));
  return new Set(telling.length ? telling : words);
}

export function marked(text, words) {
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(WORD)) {
    if (!words.has(match[0].toLowerCase())) continue;
    parts.push(text.slice(end, match.index), element("mark", {}, match[0]));
    end = match.index + match[0].length;
  }
  parts.push(text.slice(end));
  return parts.filter((part) => part !== "");
}

// Where the window begins that holds the most different words: it slides over the text once, however long that is.
function densest(text, words) {
  const inside = [], counts = new Map();
  let best = 0, most = 0, first = 0;
  for (const match of text.matchAll(WORD)) {
    const word = match[0].toLowerCase();
    if (!words.has(word)) continue;
    inside.push([match.index, word]);
    counts.set(word, (counts.get(word) ?? 0) + 1);
    for (; inside[first][0] <= match.index - SNIPPET; first++) {
      const gone = inside[first][1];
      counts.set(gone, counts.get(gone) - 1);
      if (!counts.get(gone)) counts.delete(gone);
    }
    if (counts.size > most) { most = counts.size; best = inside[first][0]; }
  }
  return best;
}

// The part of a text with the most different words of the question.
export function snippetOf(text, words) {
  if (text.length <= SNIPPET * 1.3) return text;
  let start = Math.max(0, Math.min(densest(text, words) - 60, text.length - SNIPPET));
  if (start < 60) start = 0;
  else start = Math.max(start, text.indexOf(" ", start) + 1);
  let stop = start + SNIPPET;
  if (stop < text.length) stop = text.lastIndexOf(" ", stop) > start ? text.lastIndexOf(" ", stop) : stop;
  return (start > 0 ? "… " : "") + text.slice(start, stop) + (stop < text.length ? " …" : "");
}

// elsewhere: the rank of each id in the other list, or null where there is no other list.
export function listOf(hits, question, elsewhere, onFilter) {
  const words = wordsOf(question);
  return element("ol", {}, ...hits.map((hit, place) => itemOf(hit, place + 1, words, elsewhere, onFilter)));
}

function itemOf(hit, rank, words, elsewhere, onFilter) {
  const whole = hit.text ?? "";
  const short = snippetOf(whole, words);
  const text = element("p", { class: "text" }, ...marked(short, words));
  const item = element("li", { tabindex: "-1", "data-id": hit.id });
  let open = false;
  const more = short === whole ? null : element("button", { type: "button", class: "more" }, "Whole text");
  const toggle = () => {
    open = !open;
    text.replaceChildren(...marked(open ? whole : short, words));
    if (more) more.textContent = open ? "Less" : "Whole text";
  };
  more?.addEventListener("click", toggle);
  item.addEventListener("keydown", (event) => { if (event.key === "Enter" && event.target === item && more) toggle(); });
  item.append(
    element("span", { class: "rank" }, String(rank)),
    element("span", { class: "title" }, ...marked(hit.title || hit.id, words)),
    element("span", { class: "score", title: `id ${hit.id}` }, hit.score.toFixed(4)),
  );
  if (elsewhere) item.append(movedOf(elsewhere.get(hit.id), rank));
  item.append(text, metaOf(hit, onFilter, more));
  return item;
}

function movedOf(other, rank) {
  if (other === undefined) return element("span", { class: "moved absent" }, "not in the other list");
  if (other === rank) return element("span", { class: "moved" }, "same place");
  return element("span", { class: "moved" }, `place ${other} there`);
}

function metaOf(hit, onFilter, more) {
  const line = element("div", { class: "meta" });
  for (const [field, value] of Object.entries(hit.metadata ?? {})) {
    const plain = ["string", "number", "boolean"].includes(typeof value);
    const shown = `${field}: ${plain ? value : JSON.stringify(value)}`;
    const label = shown.length > 80 ? shown.slice(0, 79) + "…" : shown;
    line.append(plain
      ? element("button", { type: "button", class: "field", title: "Filter by this", onclick: () => onFilter(field, value) }, label)
      : element("span", { class: "field" }, label));
  }
  if (more) line.append(more);
  return line;
}
