// Elements from data, and live updates that keep focus, selection and scrolling. Text only ever becomes a text node.

// el("td", {class: "number"}, "12", el("b", {}, "!")): attributes that are null, undefined or false are left out;
// functions are listeners, as in {onclick: f}.
export function el(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
        if (typeof value === "function") {
            node[name] = value;
        } else if (value === true) {
            node.setAttribute(name, "");
        } else if (value !== null && value !== undefined && value !== false) {
            node.setAttribute(name, value);
        }
    }
    node.append(...children.flat(2).filter((child) => child !== null && child !== undefined));
    return node;
}

const listeners = ["onclick", "oninput", "onchange"];

// Makes `old` look like `fresh`, changing no more than what differs. An element with the attribute data-own looks after
// its own content; one that is open or holds what a person typed stays so.
export function morph(old, fresh) {
    if (old.nodeType === Node.TEXT_NODE) {
        if (old.data !== fresh.data) {
            old.data = fresh.data;
        }
        return;
    }
    attributes(old, fresh);
    for (const name of listeners) {
        old[name] = fresh[name];
    }
    if (!old.hasAttribute("data-own")) {
        children(old, fresh);
    }
}

function attributes(old, fresh) {
    for (const {name} of [...old.attributes]) {
        if (!fresh.hasAttribute(name) && name !== "open") {
            old.removeAttribute(name);
        }
    }
    for (const {name, value} of fresh.attributes) {
        if (old.getAttribute(name) !== value && name !== "open") {
            old.setAttribute(name, value);
        }
    }
}

function same(a, b) {
    return a.nodeType === b.nodeType && a.nodeName === b.nodeName && a.dataset?.key === b.dataset?.key;
}

function children(old, fresh) {
    const wanted = [...fresh.childNodes];
    let at = old.firstChild;
    for (const child of wanted) {
        if (at && same(at, child)) {
            morph(at, child);
            at = at.nextSibling;
        } else {
            const kept = child.dataset?.key && [...old.children].find((other) => same(other, child));
            old.insertBefore(kept || child, at);
            if (kept) {
                morph(kept, child);
            }
        }
    }
    while (at) {
        const next = at.nextSibling;
        at.remove();
        at = next;
    }
}

export function render(container, ...nodes) {
    const fresh = container.cloneNode(false);
    fresh.append(...nodes.flat(2).filter((node) => node !== null && node !== undefined));
    children(container, fresh);
}

// A table with a caption. A column: {title, number: true for figures, sparse: true if it is left out where all cells are dashes,
// wide: true for sentences}; a row: {key, class, cells}.
export function table(caption, given, all, empty = "Nothing.") {
    if (all.length === 0) {
        return el("p", {class: "empty"}, empty);
    }
    const kept = given.map(({sparse}, i) => !sparse || all.some(({cells}) => cells[i] !== "–"));
    const columns = given.filter((_, i) => kept[i]);
    const rows = all.map((row) => ({...row, cells: row.cells.filter((_, i) => kept[i])}));
    const head = columns.map(({title, number}) => el("th", {scope: "col", class: number ? "number" : null}, title));
    const kind = (cell, i) => [columns[i].number && "number", columns[i].wide && "wide", cell === "–" && "none"].filter(Boolean).join(" ") || null;
    const body = rows.map(({key, cells, ...attributes}) => el("tr", {"data-key": key, ...attributes}, cells.map((cell, i) =>
        i === 0 ? el("th", {scope: "row"}, cell) :
            el("td", {class: kind(cell, i), "data-title": columns[i].title}, el("div", {}, cell)))));
    return el("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": caption},
              el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)));
}
