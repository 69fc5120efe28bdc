// Small pictures: how much of a bound is used and by whom, and how that came about within an hour.
import {amount, percent} from "./format.js";
import {near} from "./model.js";

function svg(tag, attributes, ...children) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) {
        node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
}

function image(look, width, height, label, children) {
    return svg("svg", {class: look, viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label}, ...children);
}

// The three largest tenants, and the rest.
export function bar(model, use) {
    const unit = model.unit(use.resource);
    const whole = Math.max(use.scale, use.used, 1);
    const level = use.bound === null ? "" : use.used >= use.bound ? "bad" : use.used >= near * use.bound ? "warn" : "";
    const largest = use.shares.slice(0, 3).map(({cell}) => cell.used);
    let left = 0;
    const pieces = [...largest, Math.max(0, use.used - largest.reduce((sum, used) => sum + used, 0))].map((used, i) => {
        const width = Math.min(100 - left, 100 * used / whole);
        left += width;
        return svg("rect", {class: `share share-${i}`, x: left - width, width, y: 0, height: 8});
    });
    return image(`bar ${level}`, 100, 8, `${amount(use.used, unit)} of ${amount(use.scale, unit)}, ${percent(use.used, use.scale)}`, pieces);
}

// Of figures by minutes, oldest first; null where nobody looked.
export function hour(figures, unit) {
    const known = figures.filter((figure) => figure !== null);
    if (known.length < 2) {
        return null;
    }
    const most = Math.max(...known, 1);
    const points = figures.map((figure, i) => (figure === null ? null : `${i},${(14 - 12 * figure / most).toFixed(1)}`)).filter(Boolean);
    const label = `The last hour: from ${amount(known[0], unit)} to ${amount(known.at(-1), unit)}, at most ${amount(most, unit)}`;
    return image("hour", figures.length - 1, 15, label, [svg("title", {}, label), svg("polyline", {points: points.join(" ")})]);
}
