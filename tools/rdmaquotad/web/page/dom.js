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
    node.append(...shown(children));
    return node;
}

// Of lists within lists; null, undefined and false are left out.
function shown(nodes) {
    return nodes.flat(Infinity).filter((node) => node !== null && node !== undefined && node !== false);
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
    if (["INPUT", "SELECT"].includes(old.nodeName) && old !== document.activeElement) {
        old.value = fresh.value;
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
    const keyed = new Map([...old.children].filter(({dataset}) => dataset.key).map((node) => [node.dataset.key, node]));
    let at = old.firstChild;
    for (const child of [...fresh.childNodes]) {
        if (at && same(at, child)) {
            morph(at, child);
            at = at.nextSibling;
            continue;
        }
        const known = keyed.get(child.dataset?.key);
        const kept = known && known.parentNode === old && same(known, child) ? known : null;
        old.insertBefore(kept ?? child, at);
        if (kept) {
            morph(kept, child);
        }
    }
    while (at) {
        const next = at.nextSibling;
        at.remove();
        at = next;
    }
}

// What is moved would lose the focus.
export function render(container, ...nodes) {
    const focused = document.activeElement;
    const fresh = container.cloneNode(false);
    fresh.append(...shown(nodes));
    children(container, fresh);
    if (focused !== document.activeElement && container.contains(focused)) {
        focused.focus({preventScroll: true});
    }
}
