// The tree of tenants, for one device and resource that can be chosen.
import {el, table} from "./dom.js";
import {amount, clean, duration, percent, reasons} from "./format.js";
import {link} from "./links.js";
import {Model, near} from "./model.js";

// Of the figures of a cell; those that nobody has are left out.
export const figureColumns = [
    {title: "Used", number: true}, {title: "Of limit", number: true}, {title: "Limit now", number: true},
    {title: "Guarantee", number: true, sparse: true}, {title: "Soft limit", number: true, sparse: true},
    {title: "Grace left", number: true, sparse: true}, {title: "Peak", number: true}, {title: "Debt", number: true, sparse: true},
    {title: "Earmarked", number: true, sparse: true},
];
const most = 60;

export const choice = {device: null, resource: "qp", filter: "", all: false};

function select(label, options, value, chosen) {
    return el("label", {}, `${label} `, el("select", {onchange: (event) => chosen(event.target.value)},
        options.map((option) => el("option", {value: option, selected: option === value}, clean(option)))));
}

function controls(model, device, changed) {
    const change = (name) => (value) => {
        choice[name] = value;
        changed();
    };
    return el("form", {class: "controls", onsubmit: null},
              select("Device", model.devices, model.devices[device], change("device")),
              select("Resource", model.resources.map(({name}) => name), choice.resource, change("resource")),
              el("label", {}, "Name has ", el("input", {type: "search", value: choice.filter, oninput: (event) => change("filter")(event.target.value)})));
}

// Of a cell, in the order of the columns; a dash where there is none.
export function figures(cell, unit) {
    if (!cell) {
        return Array(9).fill("–");
    }
    const none = (value) => value ? amount(value, unit) : "–";
    return [amount(cell.used, unit), cell.limit === null ? "–" : percent(cell.used, cell.limit),
            cell.reason === null ? amount(cell.limit, unit) :
                [amount(cell.limit, unit), el("small", {title: reasons[cell.reason]}, ` ${clean(cell.reason)}`)],
            none(cell.guarantee),
            amount(cell.soft, unit), cell.grace === null ? "–" : duration(cell.grace), amount(cell.peak, unit), none(cell.debt),
            none(cell.earmarked)];
}

// What the words in a table of these cells mean, as far as they are there.
export function explained(cells) {
    const words = [...new Set(cells.map(({reason}) => reason))].filter((reason) => reasons[reason])
        .map((reason) => [reason, `the limit is not the configured one now: ${reasons[reason]}`]);
    const has = (member) => cells.some((cell) => cell[member]);
    words.push(...[["guarantee", "Guarantee", "reserved for it, whatever others want"],
                   ["soft", "Soft limit", "it may be above for the grace period; then it is the limit"],
                   ["debt", "Debt", "what it uses above its share; what it frees goes to others first"],
                   ["earmarked", "Earmarked", "what it asked for and is to have as those with debts free it"]]
        .filter(([member]) => has(member)).map(([, word, meaning]) => [word, meaning]));
    return words.length === 0 ? null : el("dl", {class: "words"}, words.map(([word, meaning]) =>
        el("div", {}, el("dt", {}, word), el("dd", {}, meaning))));
}

// A share that is used up is nothing to mend: it grows when others leave something.
export function levelOf(cell) {
    if (!cell || cell.used === 0) {
        return null;
    }
    const fill = Model.fill(cell);
    return fill >= 1 ? "bad" : fill >= near || cell.grace !== null ? "warn" : null;
}

function row(model, device, resource, {tenant, depth}) {
    const cell = model.cell(tenant, device, resource);
    return {
        key: tenant.name, class: levelOf(cell),
        cells: [el("span", {class: `depth-${Math.min(depth, 6)}`}, link.tenant(tenant.name),
                   tenant.mode === "enforce" ? null : el("small", {}, ` ${tenant.mode}`)),
                ...figures(cell, model.unit(resource))],
    };
}

export function tenantsPage(model, changed) {
    const first = model.deviceNumbers[0] ?? 0;
    const device = Math.max(model.devices.includes(choice.device) ? model.device(choice.device) : first, 0);
    const resource = model.resource(choice.resource);
    const all = model.tree.filter(({tenant}) => tenant.name.includes(choice.filter));
    const rows = (choice.all ? all : all.slice(0, most)).map((entry) => row(model, device, resource, entry));
    const shownCells = model.tenants.map((tenant) => model.cell(tenant, device, resource)).filter(Boolean);
    const more = all.length - rows.length;
    return [el("section", {"aria-labelledby": "tenants"}, el("h2", {id: "tenants"}, "Tenants"),
               controls(model, device, changed),
               table(`Tenants: ${choice.resource} on ${clean(model.devices[device] ?? "no device")}`, [{title: "Tenant"}, ...figureColumns], rows,
                     "No tenant has that in its name."), explained(rows.length > 0 ? shownCells : []),
               more > 0 ? el("button", {type: "button", id: "all-tenants", onclick: () => {
                   choice.all = true;
                   changed();
               }}, `Show ${more} more`) : null)];
}
