"use strict";

// Tables sort by a click on a header: up, then down, then as they were; what is missing stays last.
const NEXT = { none: "ascending", ascending: "descending", descending: "none" };
const NUMBER = /^([+-]?\d[\d.]*(?:,\d{3})*)(?:e([+-]?\d+))?(?:\/(\d+))?/;

for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => sort(button.parentElement));
}

function sort(head) {
  const order = NEXT[head.getAttribute("aria-sort") ?? "none"];
  const body = head.closest("table").tBodies[0];
  const rows = [...body.rows];
  rows.forEach((row, place) => { row.dataset.place ??= place; });
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  if (order !== "none") head.setAttribute("aria-sort", order);
  const key = head.classList.contains("number") ? size : (text) => text;
  const sign = order === "descending" ? -1 : 1;
  const keyed = rows.map((row) => ({ row, value: order === "none" ? null : keyOf(row.cells[head.cellIndex], key) }));
  keyed.sort((a, b) => compared(a.value, b.value, sign) || a.row.dataset.place - b.row.dataset.place);
  body.append(...keyed.map(({ row }) => row));
}

// A number, words, or null where there is neither.
function keyOf(cell, key) {
  const text = cell.textContent.trim();
  return text === "" || text === "-" ? null : key(text);
}

// Numbers before words before nothing, whichever way the sorting goes.
function compared(a, b, sign) {
  const rank = (value) => (value === null ? 2 : typeof value === "string" ? 1 : 0);
  if (rank(a) !== rank(b)) return rank(a) - rank(b);
  if (a === null) return 0;
  return sign * (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
}

// In the order of the numbers that cells begin with, which may lie beyond what a number of this language holds.
function size(text) {
  const found = NUMBER.exec(text);
  if (!found) return text;
  const mantissa = found[1].replaceAll(",", "") / (found[3] ?? 1);
  return mantissa === 0 ? 0 : Math.sign(mantissa) * (Math.log10(Math.abs(mantissa)) + Number(found[2] ?? 0) + 1e5);
}

// Words explain themselves below where they stand.
const meaning = document.createElement("div");
meaning.className = "meaning";
meaning.setAttribute("role", "tooltip");
meaning.hidden = true;
document.body.append(meaning);

const hide = () => { meaning.hidden = true; };

function explain(event) {
  const word = event.target.closest?.("[data-word]");
  if (!word) return;
  meaning.textContent = word.dataset.word.split(" ").map((number) => {
    const said = document.getElementById(`word-${number}`);
    return `${said.previousElementSibling.textContent}: ${said.textContent}`;
  }).join("\n");
  meaning.hidden = false;
  const at = word.getBoundingClientRect();
  const left = Math.min(at.left, document.documentElement.clientWidth - meaning.offsetWidth - 8);
  const below = at.bottom + meaning.offsetHeight < innerHeight || at.top < meaning.offsetHeight;
  meaning.style.left = `${Math.max(left, 8)}px`;
  meaning.style.top = `${below ? at.bottom : at.top - meaning.offsetHeight}px`;
}

function leave(event) {
  if (!meaning.contains(event.relatedTarget)) hide();
}

document.addEventListener("mouseover", explain);
document.addEventListener("focusin", explain);
document.addEventListener("mouseout", leave);
document.addEventListener("focusout", leave);
document.addEventListener("scroll", hide, { capture: true, passive: true });
document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
document.addEventListener("click", (event) => {
  if (matchMedia("(hover: none)").matches && event.target.closest?.("a.word")) event.preventDefault();
});

// Figures are looked into: a wider picture in a box that scrolls, drawn anew at every size; on phones from the first.
const LARGEST = 12, READABLE = 640;
for (const box of document.querySelectorAll(".picture")) look(box);

function look(box) {
  const image = box.querySelector("img");
  let scale = 1;

  // The point of the box that is given, or its middle, stays where it is.
  function zoom(wanted, x = box.clientWidth / 2, y = box.clientHeight / 2) {
    const before = scale;
    scale = Math.min(Math.max(wanted, 1), LARGEST);
    if (scale === before) return;
    if (before === 1) box.style.maxHeight = `${Math.max(box.offsetHeight, 0.75 * innerHeight)}px`;
    if (scale === 1) box.style.maxHeight = "";
    const [across, down] = [(box.scrollLeft + x) / before, (box.scrollTop + y) / before];
    image.style.width = `${100 * scale}%`;
    box.scrollLeft = across * scale - x;
    box.scrollTop = down * scale - y;
  }

  function at(event) {
    const edge = box.getBoundingClientRect();
    return [event.clientX - edge.left, event.clientY - edge.top];
  }

  const changes = { in: () => zoom(scale * 1.5), out: () => zoom(scale / 1.5), fit: () => zoom(1) };
  for (const button of box.parentElement.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", changes[button.dataset.zoom]);
  }
  box.addEventListener("keydown", (event) => {
    const change = { "+": "in", "=": "in", "-": "out", 0: "fit" }[event.key];
    if (!change || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    changes[change]();
  });
  // A wheel that only passes by scrolls the page.
  box.addEventListener("wheel", (event) => {
    const wanted = scale * Math.exp(-event.deltaY / (event.ctrlKey ? 100 : 400));
    if (!event.ctrlKey && (!box.matches(":focus") || (scale === 1 && wanted < 1))) return;
    event.preventDefault();
    zoom(wanted, ...at(event));
  }, { passive: false });
  box.addEventListener("dblclick", (event) => zoom(scale === 1 ? 3 : 1, ...at(event)));

  zoom(READABLE / box.clientWidth, 0, 0);

  let dragged = null;
  box.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "mouse" || event.button !== 0 || event.target !== image) return;
    dragged = event;
    box.setPointerCapture(event.pointerId);
  });
  box.addEventListener("pointermove", (event) => {
    if (!dragged) return;
    box.scrollBy(dragged.clientX - event.clientX, dragged.clientY - event.clientY);
    dragged = event;
  });
  for (const end of ["pointerup", "pointercancel"]) box.addEventListener(end, () => { dragged = null; });

  let pinched = null;
  const spread = ([one, other]) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
  const touched = (event) => {
    if (event.touches.length !== 2) { pinched = null; return; }
    event.preventDefault();
    const [one, other] = event.touches;
    const middle = at({ clientX: (one.clientX + other.clientX) / 2, clientY: (one.clientY + other.clientY) / 2 });
    pinched ??= { spread: spread(event.touches), scale };
    zoom(pinched.scale * spread(event.touches) / pinched.spread, ...middle);
  };
  for (const kind of ["touchstart", "touchmove", "touchend"]) box.addEventListener(kind, touched, { passive: false });
}

// What stands beside a button is copied, and selected where a page may not write to the clipboard.
for (const button of document.querySelectorAll(".code button")) {
  button.addEventListener("click", async () => {
    const code = button.parentElement.querySelector("code");
    getSelection().selectAllChildren(code);
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Selected";
    }
  });
}
