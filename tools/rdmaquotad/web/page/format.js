// Words and figures for people.
import {el} from "./dom.js";

const number = new Intl.NumberFormat("en");
const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

// What can hide, reorder or forge text on the screen: controls, bidirectional marks, invisible characters.
const deceptive = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\ufff9-\ufffc]|[\ud800-\udfff](?![\udc00-\udfff])/gu;

// A name from outside, such that it can be seen what it is.
export function clean(text) {
    return String(text).replace(deceptive, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

export function named(text) {
    return el("bdi", {}, clean(text));
}

// `unit` is "count" or "bytes".
export function amount(value, unit) {
    if (value === null || value === undefined) {
        return "–";
    }
    if (unit !== "bytes") {
        return number.format(value);
    }
    let power = 0;
    let scaled = value;
    while (scaled >= 1024 && power + 1 < units.length) {
        scaled /= 1024;
        ++power;
    }
    return `${Number(scaled.toFixed(scaled < 10 && power > 0 ? 1 : 0))} ${units[power]}`;
}

// The same as `rdmaquota set` takes it, rounded up.
export function setting(value, unit) {
    if (unit !== "bytes" || value < 1024) {
        return String(Math.ceil(value));
    }
    let power = 0;
    let scaled = value;
    while (scaled >= 10240 && power < 4) {
        scaled = Math.ceil(scaled / 1024);
        ++power;
    }
    return power === 0 ? String(scaled) : `${scaled}${units[power]}`;
}

export function percent(part, whole) {
    if (whole <= 0) {
        return "–";
    }
    const rounded = Math.round(100 * part / whole);
    return rounded === 0 && part > 0 ? "<1 %" : `${rounded} %`;
}

export function duration(seconds) {
    const steps = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
    const [size, unit] = steps.find(([step]) => seconds >= 2 * step) || steps[3];
    return `${Math.floor(seconds / size)} ${unit}`;
}

// A time in milliseconds as text: "45 ms", "3.2 s".
export function span(ms) {
    return ms < 1000 ? `${Math.round(ms)} ms` : `${number.format(Math.round(ms / 100) / 10)} s`;
}

export function ago(time, now) {
    const seconds = Math.max(0, (now - Date.parse(time)) / 1000);
    return seconds < 1 ? "now" : `${duration(seconds)} ago`;
}

export function clock(time) {
    return new Date(time).toLocaleTimeString("en-GB");
}

// Why a limit is not what was configured.
export const reasons = {
    grant: "its share of what a tenant above may use", rule: "held by a dynamic rule",
    soft: "above its soft limit for too long",
};

const plain = /^[A-Za-z0-9_/][A-Za-z0-9_.:@/+-]*$/;

const options = new Set(["--burst", "--dir", "--guarantee", "--pid", "--process", "--soft"]);

// A command to type, or nothing where a name in it is more than a plain word: what is copied into a shell must be what is
// seen.
export function command(...words) {
    return words.every((word) => plain.test(word) || /^[a-z_]+=[A-Za-z0-9]+$/.test(word) || options.has(word)) ?
        el("code", {class: "command"}, words.join(" ")) : null;
}
