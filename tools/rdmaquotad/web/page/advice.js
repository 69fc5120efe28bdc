// What to type against a full limit, and what would be of no use: more for a tenant helps only as far as those above it, the
// node and the device have room.
import {el} from "./dom.js";
import {amount, clean, command, named, setting} from "./format.js";
import {link} from "./links.js";

// "To allow more: COMMAND", for root; others are told whom to ask.
export function advice(model, purpose, shown) {
    return shown && el("p", {class: "advice"}, model.all ? `${purpose}: ` : `${purpose}, ask an administrator for: `, shown);
}

export function set(tenant, device, resource, value, ...options) {
    return command("rdmaquota", "set", tenant, device, `${resource.name}=${setting(value, resource.unit)}`, ...options);
}

function more(value) {
    return Math.max(Math.ceil(value * 1.25), value + 1);
}

// The tenants above, the nearest first.
export function above(model, tenant) {
    const list = [];
    for (let at = model.byName.get(tenant.parent); at && at.name !== "node"; at = model.byName.get(at.parent)) {
        list.push(at);
    }
    return list;
}

// What bounds a tenant from above: [{what: node to show, most, full}], the tenants above it, then the node and the device.
function bounds(model, use, tenant) {
    const list = above(model, tenant).map((parent) => ({parent, cell: model.cell(parent, use.device, use.resource)}))
        .filter(({cell}) => cell && cell.configured !== null)
        .map(({parent, cell}) => ({what: link.tenant(parent.name), most: cell.configured, full: cell.used >= cell.configured}));
    if (use.bound !== null && !use.own) {
        list.push({what: link.device(model.devices[use.device]), most: use.bound, full: use.used >= use.bound});
    }
    return list;
}

// For a tenant at its own limit.
export function moreForTenant(model, use, tenant, limit) {
    const all = bounds(model, use, tenant);
    const full = all.find((bound) => bound.full);
    const least = all.reduce((a, b) => (a && a.most <= b.most ? a : b), null);
    if (full || (least && least.most <= limit)) {
        const {what} = full ?? least;
        return el("p", {class: "advice"}, "A higher limit for it alone would not help: ", what, full ? " is full." : " has no higher limit.");
    }
    const value = least ? Math.min(more(limit), least.most) : more(limit);
    return advice(model, "To allow more", set(tenant.name, model.devices[use.device], model.resources[use.resource], value));
}

// For a node at its own limit; nothing helps against the device's end.
export function moreForNode(model, use) {
    const {unit} = model.resources[use.resource];
    const device = model.devices[use.device];
    if (use.capacity !== null && use.capacity <= use.bound) {
        return el("p", {class: "advice"}, "No limit helps: ", named(device), ` cannot have more than ${amount(use.capacity, unit)}.`);
    }
    const value = use.capacity === null ? more(use.bound) : Math.min(more(use.bound), use.capacity);
    return advice(model, "To allow more on this node", set("node", device, model.resources[use.resource], value));
}

// Nothing is taken from a program by force, so somebody has to end one.
export function makeRoom(model, use) {
    const [first] = model.processes(use.device, use.resource);
    if (!first) {
        return null;
    }
    const whose = first.user ? `ask ${clean(first.user)} to end ` : "end ";
    const kill = model.all && first.pid ? [", or end it, which loses its work: ", command("kill", String(first.pid))] : ".";
    return el("p", {class: "advice"}, "To make room: ", whose, link.process({...first, tenant: first.tenant.name}), kill);
}
