// The page: what it shows is in its address, and every answer comes from the API that everybody else uses.

import { element, listOf } from "/site/results.js";

const STEPS = ["queue", "encode", "probe", "scan", "documents"];
const find = (id) => document.getElementById(id);
const [form, q, filter, k, compare, status, timing, answers] =
  ["form", "q", "filter", "k", "compare", "status", "timing", "answers"].map(find);
let index = null;
let latest = 0;

async function ask(path, content) {
  const options = content === undefined ? {} :
    { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(content) };
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw { code: "no_answer", message: "The server does not answer; is it running?" };
  }
  let body;
  try {
    body = await response.json();
  } catch {
    throw { code: `status ${response.status}`, message: "The answer of the server cannot be read." };
  }
  if (!response.ok) throw body.error ?? { code: `status ${response.status}`, message: "The server refused." };
  return body;
}

const ours = (path) => `${path}?index=${encodeURIComponent(index.name)}`;

async function start() {
  const address = new URLSearchParams(location.search);
  try {
    const { indexes } = await ask("/v1/indexes");
    const wanted = indexes.includes(address.get("index")) ? address.get("index") : indexes[0];
    const choice = find("index");
    choice.replaceChildren(...indexes.map((name) => element("option", { selected: name === wanted }, name)));
    choice.hidden = indexes.length < 2;
    index = await ask(`/v1/index?index=${encodeURIComponent(wanted)}`);
  } catch (error) {
    return showError(error);
  }
  showIndex();
  readAddress();
}

function showIndex() {
  const size = index.search_bytes < 1e6 ? `${(index.search_bytes / 1e3).toFixed(0)} KB` : `${(index.search_bytes / 1e6).toFixed(1)} MB`;
  find("facts").replaceChildren(
    element("b", {}, index.documents.toLocaleString("en")), " documents in ",
    element("b", {}, size), ` (${index.bytes_per_document.toFixed(1)} bytes each), `,
    element("b", {}, `${index.times_smaller.toFixed(1)}×`), " smaller than their vectors",
  );
  find("compare-label").hidden = !index.exact;
  const fields = find("fields");
  fields.hidden = find("filter-label").hidden = !index.fields.length;
  fields.replaceChildren("Fields: ", ...index.fields.slice(0, 30).flatMap((name) => [
    element("button", { type: "button", onclick: () => { filter.value = joined(`${named(name)} = `); filter.focus(); } }, name), " "]));
  if (!index.reads_text) {
    q.disabled = find("go").disabled = true;
    show("This index was built from vectors, so that it is asked by vectors and not by text: see the API.");
  }
}

function readAddress() {
  const address = new URLSearchParams(location.search);
  q.value = address.get("q") ?? "";
  filter.value = address.get("filter") ?? "";
  k.value = [...k.options].some((option) => option.value === address.get("k")) ? address.get("k") : "10";
  compare.checked = index.exact && address.get("compare") === "1";
  if (q.value.trim() && index.reads_text) search();
  else if (index.reads_text) { clear(); q.focus(); }
}

function writeAddress() {
  const address = new URLSearchParams({ q: q.value });
  if (filter.value.trim()) address.set("filter", filter.value.trim());
  if (k.value !== "10") address.set("k", k.value);
  if (compare.checked) address.set("compare", "1");
  if (!find("index").hidden) address.set("index", index.name);
  const target = `/?${address}`;
  if (target !== location.pathname + location.search) history.pushState(null, "", target);
}

async function search() {
  const question = q.value.trim();
  if (!question) return;
  document.title = `${question} – RepCONC search`;
  const request = { query: question, k: Number(k.value), text: true };
  if (filter.value.trim()) request.filter = filter.value.trim();
  const number = ++latest;
  answers.setAttribute("aria-busy", "true");
  try {
    const asked = [ask(ours("/v1/search"), request)];
    if (compare.checked) asked.push(ask(ours("/v1/search"), { ...request, exact: true }));
    const found = await Promise.all(asked);
    if (number === latest) showAnswers(question, ...found);
  } catch (error) {
    if (number === latest) showError(error);
  } finally {
    if (number === latest) answers.removeAttribute("aria-busy");
  }
}

function showAnswers(question, ours, exact) {
  const hits = ours.results[0].hits;
  showTiming(ours.milliseconds);
  if (!hits.length) {
    answers.replaceChildren();
    return show("Nothing found.", filter.value.trim() ? "No document passes the filter; try it without." : "The index is empty.");
  }
  const columns = [element("section", {}, exact ? headOf("Compressed", `${index.bytes_per_document.toFixed(0)} bytes a document`) : null,
    listOf(hits, question, exact ? ranksOf(exact) : null, addFilter))];
  let line = `${hits.length} results`;
  if (exact) {
    const other = ranksOf(exact), same = hits.filter((hit) => other.has(hit.id)).length;
    line = `${same} of ${exact.results[0].hits.length} are in both lists`;
    columns.push(element("section", {}, headOf("Uncompressed", `${(4 * index.dimension).toLocaleString("en")} bytes a document`),
      listOf(exact.results[0].hits, question, ranksOf(ours), addFilter)));
  }
  status.textContent = line;
  answers.className = exact ? "answers two" : "answers";
  answers.replaceChildren(...columns);
}

const headOf = (name, size) => element("h2", {}, `${name} `, element("small", {}, size));
const ranksOf = (answer) => new Map(answer.results[0].hits.map((hit, place) => [hit.id, place + 1]));

function showTiming(milliseconds) {
  const steps = STEPS.filter((step) => step in milliseconds);
  const sum = steps.reduce((total, step) => total + milliseconds[step], 0) || 1;
  const bar = element("div", { class: "bar", "aria-hidden": "true" });
  for (const step of steps) {
    const part = element("span", { class: step });
    part.style.width = `${100 * milliseconds[step] / sum}%`;
    bar.append(part);
  }
  const words = steps.map((step) => element("span", { class: `step ${step}` }, `${step} ${milliseconds[step].toFixed(2)} ms`));
  timing.replaceChildren(bar, ...words, element("span", {}, `total ${milliseconds.total.toFixed(2)} ms`));
  timing.hidden = false;
}

function show(sentence, small = "") {
  status.replaceChildren(element("p", { class: "message" }, sentence, small ? element("small", {}, small) : null));
}

function showError(error) {
  const again = element("button", { type: "button", class: "more", onclick: index ? search : start }, "Try again");
  status.replaceChildren(element("p", { class: "message error", role: "alert" }, error.message, " ", again,
    element("small", {}, error.code)));
  answers.replaceChildren();
  answers.removeAttribute("aria-busy");
  timing.hidden = true;
}

function clear() {
  latest += 1;
  status.replaceChildren();
  answers.replaceChildren();
  timing.hidden = true;
  document.title = "RepCONC search";
}

const inQuotes = (text) => `"${text.replace(/[\\"]/g, "\\$&")}"`;
// A word of the filter language is no name of a field unless it is in quotes.
const named = (field) => /^[a-z_][\w.-]*$/i.test(field) && !/^(and|or|not|in)$/i.test(field) ? field : inQuotes(field);

function joined(condition) {
  const before = filter.value.trim();
  if (!before) return condition;
  return `${/\bor\b/i.test(before) ? `(${before})` : before} and ${condition}`;
}

function addFilter(field, value) {
  filter.value = joined(`${named(field)} = ${typeof value === "string" ? inQuotes(value) : value}`);
  submit();
}

function submit() {
  writeAddress();
  search();
}

function move(step) {
  const items = [...answers.querySelectorAll("li")];
  const next = items.indexOf(document.activeElement?.closest("li")) + step;
  items[Math.max(0, Math.min(next, items.length - 1))]?.focus();
}

form.addEventListener("submit", (event) => { event.preventDefault(); submit(); });
for (const choice of [k, compare]) choice.addEventListener("change", () => { if (q.value.trim()) submit(); });
find("index").addEventListener("change", (event) => {
  location.assign(`/?${new URLSearchParams({ index: event.target.value, q: q.value })}`);
});
window.addEventListener("popstate", readAddress);
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key === "Escape") { q.value = ""; q.focus(); }
  else if (typing) return;
  else if (event.key === "/") { event.preventDefault(); q.focus(); q.select(); }
  else if (event.key === "j" || event.key === "k") move(event.key === "j" ? 1 : -1);
});

start();
