// Tables that are sorted by a click on a column's title, and searched; both are kept in the address.
import {el} from "./dom.js";
import {choice, choose} from "./links.js";

const words = new Intl.Collator("en", {numeric: true});
const slug = (title) => title.toLowerCase().replace(/[^a-z]+/g, "-");

// The column by which this table is sorted: {name, down: the largest first}; `given` as in table().
export function sorting(id, given = "") {
    const chosen = choice(`sort-${id}`, given);
    return {name: chosen.replace(/^-/, ""), down: chosen.startsWith("-")};
}

// Items without a value are last in either direction; equal ones keep their order.
function sorted({id, columns, sort}, items) {
    const {name, down} = sorting(id, sort);
    const value = columns.find((column) => slug(column.title) === name)?.value;
    if (!value) {
        return items;
    }
    const compare = (a, b) => (typeof a === "string" ? words.compare(a, b) : a - b) * (down ? -1 : 1);
    return items.map((item) => ({item, of: value(item) ?? null}))
        .sort((a, b) => (a.of === null || b.of === null ? (a.of === null) - (b.of === null) : compare(a.of, b.of)))
        .map(({item}) => item);
}

function heading({id, sort}, {title, number, value}) {
    const look = {scope: "col", class: number ? "number" : null};
    if (!value) {
        return el("th", look, title);
    }
    const now = sorting(id, sort);
    const here = now.name === slug(title);
    const down = here ? !now.down : Boolean(number);
    return el("th", {...look, "aria-sort": here ? now.down ? "descending" : "ascending" : null},
              el("button", {type: "button", class: "sort", onclick: () => choose(`sort-${id}`, (down ? "-" : "") + slug(title))}, title));
}

function search(id) {
    return el("label", {}, "Find ", el("input", {type: "search", value: choice(`find-${id}`),
                                                 oninput: (event) => choose(`find-${id}`, event.target.value)}));
}

function found({id, find}, items) {
    const text = find ? choice(`find-${id}`).toLowerCase() : "";
    return text === "" ? items : items.filter((item) => find(item).toLowerCase().includes(text));
}

function body(columns, row, item) {
    const cells = columns.map(({cell}) => cell(item));
    const kind = (cell, {number, wide}) => [number && "number", wide && "wide", cell === "–" && "none"].filter(Boolean).join(" ") || null;
    const {key, ...look} = row(item);
    return el("tr", {"data-key": key, ...look}, cells.map((cell, i) => i === 0 ? el("th", {scope: "row"}, cell) :
        el("td", {class: kind(cell, columns[i]), "data-title": columns[i].title}, el("div", {}, cell))));
}

// `id`: its name in the address. A column: {title, cell: (item) => what is shown, value: (item) => a number or word to sort by, null
// where there is none; without it the column cannot be sorted by, number: true for figures, sparse: true if it is left out where all
// cells are dashes, wide: true for sentences}. row: (item) => {key, class, id}. sort: "-used" is by the column Used, the largest
// first; without it the items are in order. find: (item) => the text to search. controls: what else stands there. most: how many
// rows are shown at first.
export function table(shape) {
    const {id, caption, columns, items, row, find, controls = [], most = Infinity, empty = "Nothing."} = shape;
    if (items.length === 0) {
        return el("p", {class: "empty"}, empty);
    }
    const kept = columns.filter(({sparse, cell}) => !sparse || items.some((item) => cell(item) !== "–"));
    const all = sorted(shape, found(shape, items));
    const shown = choice(`all-${id}`) ? all : all.slice(0, most);
    return [
        find ? el("div", {class: "controls"}, controls, search(id)) : null,
        el("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": `Table: ${caption}`},
           el("table", {class: kept.some(({value}) => value) ? "sorted" : null}, el("caption", {}, caption),
              el("thead", {}, el("tr", {}, kept.map((column) => heading(shape, column)))),
              el("tbody", {}, shown.map((item) => body(kept, row, item))))),
        all.length === 0 ? el("p", {class: "empty"}, "Nothing like that is there.") : null,
        all.length > shown.length ? el("button", {type: "button", "data-key": `all-${id}`, onclick: () => choose(`all-${id}`, "yes")},
                                       `Show ${all.length - shown.length} more`) : null,
    ];
}
