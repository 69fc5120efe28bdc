// All tenants, for one device and resource that can be chosen: the fullest first; sorted by name they are a tree.
import {el} from "./dom.js";
import {amount, clean, duration, percent, reasons} from "./format.js";
import {choice, choose, link} from "./links.js";
import {Model, near} from "./model.js";
import {sorting, table} from "./table.js";

function figure(title, member, more = {}) {
    return {title, number: true, value: ({cell}) => cell?.[member], cell: ({cell, unit}) => amount(cell?.[member], unit), ...more};
}

// Columns of items {cell (undefined: there are no figures), unit, capacity: what the device can have, where that is known}; those
// that nobody has are left out.
export const figureColumns = [
    figure("Used", "used"),
    {title: "Of limit", number: true, value: ({cell}) => cell && Model.bound(cell) !== null && Model.fill(cell),
     cell: ({cell}) => (cell && Model.bound(cell) !== null ? percent(cell.used, Model.bound(cell)) : "–")},
    figure("Limit now", "limit", {cell: ({cell, unit}) => (cell?.reason ?
        [amount(cell.limit, unit), el("small", {title: reasons[cell.reason]}, ` ${clean(cell.reason)}`)] : amount(cell?.limit, unit))}),
    {title: "Of the device", number: true, sparse: true, value: ({cell, capacity}) => cell && capacity && cell.used / capacity,
     cell: ({cell, capacity}) => (cell && capacity ? percent(cell.used, capacity) : "–")},
    figure("Guarantee", "guarantee", {sparse: true}), figure("Soft limit", "soft", {sparse: true}),
    figure("Grace left", "grace", {sparse: true, cell: ({cell}) => (typeof cell?.grace === "number" ? duration(cell.grace) : "–")}),
    figure("Peak", "peak"), figure("Debt", "debt", {sparse: true}), figure("Earmarked", "earmarked", {sparse: true}),
];

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

function select(title, name, options, value) {
    return el("label", {}, `${title} `, el("select", {onchange: (event) => choose(name, event.target.value)},
        options.map((option) => el("option", {value: option, selected: option === value}, clean(option)))));
}

const first = "-of-limit";

function nameColumn() {
    const tree = sorting("tenants", first).name === "tenant";
    return {title: "Tenant", value: ({place}) => place, cell: ({tenant, depth}) =>
        el("span", {class: tree ? `depth-${Math.min(depth, 6)}` : null}, link.tenant(tenant.name),
           tenant.bare ? el("small", {}, " no table") : tenant.mode === "enforce" ? null : el("small", {}, ` ${tenant.mode}`))};
}

export function tenantsPage(model) {
    const device = model.device(choice("device", model.devices[model.deviceNumbers[0]]));
    const resource = Math.max(model.resource(choice("resource", "qp")), 0);
    const {name, unit} = model.resources[resource];
    const capacity = model.capacities.get(model.key(device, resource));
    const items = model.tree.map(({tenant, depth}, place) => ({tenant, depth, place, unit, capacity, cell: model.cell(tenant, device, resource)}));
    items.sort((a, b) => (b.cell?.used ?? -1) - (a.cell?.used ?? -1));
    return el("section", {"aria-labelledby": "tenants"}, el("h2", {id: "tenants"}, "Tenants"),
              table({id: "tenants", caption: `Tenants: ${name} on ${clean(model.devices[device] ?? "no device")}`, items, sort: first, most: 60,
                     columns: [nameColumn(), ...figureColumns], find: ({tenant}) => tenant.name,
                     controls: [select("Device", "device", model.devices, model.devices[device]),
                                select("Resource", "resource", model.resources.map((one) => one.name), name)],
                     row: ({tenant, cell}) => ({key: tenant.name, class: levelOf(cell)}), empty: "There are no tenants."}),
              explained(items.map(({cell}) => cell).filter(Boolean)));
}
