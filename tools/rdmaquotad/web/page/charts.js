// A trend of one tenant, device and resource: drawn by Chart.js, with the figures as a table behind it.
import {el, render} from "./dom.js";
import {amount} from "./format.js";
import {choice, choose} from "./links.js";
import {table} from "./table.js";

/* global Chart */

const ranges = [["seconds", "2 minutes"], ["minutes", "2 hours"], ["hours", "7 days"]];

function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function label(range, time) {
    const date = new Date(time * 1000);
    if (range === "hours") {
        return date.toLocaleDateString("en-GB", {weekday: "short", hour: "2-digit"});
    }
    return date.toLocaleTimeString("en-GB", range === "seconds" ? {} : {hour: "2-digit", minute: "2-digit"});
}

// [{label, usage, peak}, ...], oldest first
function points(series, range, time) {
    const {period, usage, peak} = series[range];
    return usage.map((used, i) => ({label: label(range, time - (usage.length - 1 - i) * period), usage: used, peak: peak[i]}));
}

function line(title, values, shade, more = {}) {
    return {label: title, data: values, borderColor: shade, backgroundColor: shade, borderWidth: 2.5, pointRadius: 0,
            pointHitRadius: 8, ...more};
}

function datasets(data, limit, peaks) {
    const sets = [line("Used", data.map(({usage}) => usage), colour("--share-0"))];
    if (peaks) {
        sets.push(line("Peak", data.map(({peak}) => peak), colour("--share-1"), {borderWidth: 2, borderDash: [2, 5]}));
    }
    if (limit !== null) {
        sets.push(line("Limit now", data.map(() => limit), colour("--bad"), {borderWidth: 1.5, borderDash: [9, 5]}));
    }
    return sets;
}

export class Trend {
    constructor() {
        this.canvas = el("canvas", {role: "img"});
        this.buttons = el("div", {class: "ranges", role: "group", "aria-label": "Time"});
        this.figures = el("div");
        this.element = el("div", {}, this.buttons, el("div", {class: "chart"}, this.canvas),
                          el("details", {}, el("summary", {}, "The figures as a table"), this.figures));
        this.scheme = matchMedia("(prefers-color-scheme: dark)");
        this.scheme.addEventListener("change", () => this.draw());
    }

    // What to show: title, series as the sidecar has it (null: there is none), limit, unit, time, and whether peaks are known.
    update(shown) {
        this.shown = shown;
        this.draw();
    }

    draw() {
        const {title, series, limit, unit, time, peaks} = this.shown ?? {};
        const chosen = ranges.find(([range]) => range === choice("range")) ?? ranges[0];
        const [range, words] = chosen;
        render(this.buttons, ranges.map((one) => el("button", {
            type: "button", "aria-pressed": String(one === chosen), onclick: () => choose("range", one[0])}, one[1])));
        const data = series ? points(series, range, time / 1000) : [];
        this.canvas.setAttribute("aria-label", `${title} over ${words}; the table below has the figures`);
        this.drawChart(datasets(data, limit ?? null, peaks), data.map((point) => point.label), unit);
        const columns = [{title: "Time", cell: (point) => point.label}, {title: "Used", number: true, cell: ({usage}) => amount(usage, unit)},
                         ...(peaks ? [{title: "Peak", number: true, cell: ({peak}) => amount(peak, unit)}] : [])];
        render(this.figures, table({id: "figures", caption: title ?? "", columns, items: data.reverse(), row: (point) => ({key: point.label}),
                                    empty: "No figures yet."}));
    }

    drawChart(lines, labels, unit) {
        const text = colour("--text");
        const largest = Math.max(1, ...lines.flatMap(({data}) => data));
        const stepSize = unit === "bytes" ? 2 ** Math.ceil(Math.log2(largest / 5)) : undefined;
        const grid = {color: colour("--line")};
        const ticks = {color: text, maxTicksLimit: 6};
        const options = {
            animation: false, maintainAspectRatio: false, interaction: {mode: "index", intersect: false},
            plugins: {legend: {labels: {color: text, boxHeight: 0, boxWidth: 40}},
                      tooltip: {callbacks: {label: (item) => `${item.dataset.label}: ${amount(item.raw, unit)}`}}},
            scales: {x: {ticks: {...ticks, maxRotation: 0}, grid},
                     y: {beginAtZero: true, grid, ticks: {...ticks, stepSize, callback: (value) => amount(value, unit)}}},
        };
        this.chart ??= new Chart(this.canvas, {type: "line", data: {labels: [], datasets: []}, options});
        this.chart.options = options;
        this.chart.data = {labels, datasets: lines};
        this.chart.update("none");
    }
}
