// The first page: what needs somebody, the devices and who fills them, the last denials.
import {alertList, alerts, folded, users} from "./alerts.js";
import {el} from "./dom.js";
import {eventList} from "./events.js";
import {amount, clean, percent} from "./format.js";
import {link} from "./links.js";
import {isDenial, Model} from "./model.js";
import {bar, hour} from "./pictures.js";
import {table} from "./table.js";

const shown = 4;  // resources of a device, and all that have a limit of the node

// What is left of it, or why that is not known.
function room(model, use) {
    if (use.bound === null) {
        return use.own ? "no limit" : use.scale === null ? "no node limit" : `${percent(use.used, use.scale)} of the node's memory`;
    }
    const free = `${amount(Math.max(0, use.bound - use.used), model.unit(use.resource))} free`;
    return !use.own && use.bound === use.capacity && use.bound !== use.limit ? `${free}: the device has no more` : free;
}

export function useRow(model, use, titled = true) {
    const {name, unit, words} = model.resources[use.resource];
    return el("li", {"data-key": use.own ? `${name} ${use.shares[0].tenant.name}` : name, class: "use"},
              titled ? el("p", {class: "figures"}, el("b", {}, name), " ", el("small", {}, words)) : null,
              el("p", {class: "figures"}, use.bound === null ? amount(use.used, unit) : `${amount(use.used, unit)} of ${amount(use.bound, unit)}`,
                 hour([...model.hour(use), use.used], unit), el("span", {class: "room"}, room(model, use))),
              use.scale === null ? null : bar(model, use),
              el("p", {class: "who"}, use.shares.length === 0 ? "nobody uses it" : users(model, use, {dots: use.scale !== null})));
}

function card(model, device) {
    const uses = model.uses(device).filter((use) => use.used > 0)
        .sort((a, b) => Model.pressure(b) - Model.pressure(a) || (b.bound !== null) - (a.bound !== null) || a.resource - b.resource);
    const first = uses.slice(0, Math.max(shown, uses.filter(({limit}) => limit !== null).length));
    const name = model.devices[device];
    return el("section", {"data-key": name, class: "card", "aria-label": `Device ${clean(name)}`},
              el("h3", {}, link.device(name)),
              uses.length === 0 ? el("p", {class: "empty"}, "Not in use.") :
                  el("ul", {class: "uses"}, first.map((use) => useRow(model, use))),
              uses.length > first.length ? el("p", {class: "empty"}, link.device(name), ` has ${uses.length - first.length} more in use`) : null);
}

const perSecond = new Intl.NumberFormat("en", {maximumFractionDigits: 1});

// Who makes and destroys objects fastest; `fits` chooses among them. The kernel counts that, where the sidecar can see it.
export function churn(model, fits = () => true) {
    const heading = el("h2", {id: "churn"}, "Churn: objects made and destroyed a second");
    if (!model.node.kernel.attached) {
        return el("section", {"aria-labelledby": "churn"}, heading, el("p", {class: "empty"}, "Not known: the sidecar's program is not in the kernel. ",
                  el("a", {href: "#/node"}, "Why"), "."));
    }
    const columns = [
        {title: "Tenant", cell: ({tenant}) => (tenant === null ? "not known" : link.tenant(tenant)), value: ({tenant}) => tenant},
        {title: "Device", cell: ({device}) => link.device(device), value: ({device}) => device},
        {title: "Resource", cell: ({resource}) => resource, value: ({resource}) => resource},
        {title: "Made", number: true, cell: ({created}) => perSecond.format(created), value: ({created}) => created},
        {title: "Destroyed", number: true, cell: ({destroyed}) => perSecond.format(destroyed), value: ({destroyed}) => destroyed},
    ];
    return el("section", {"aria-labelledby": "churn"}, heading,
              table({id: "churn", caption: "Churn", columns, items: model.fastest.filter(fits), sort: "-made", most: 8,
                     row: (rate) => ({key: `${rate.tenant}\n${rate.device}\n${rate.resource}`}), empty: "Nobody makes or destroys anything."}));
}

export function overview(model) {
    const devices = model.deviceNumbers.filter((device) => model.hasDevice(model.devices[device]));
    const others = model.deviceNumbers.length - devices.length;
    return [
        el("section", {"aria-labelledby": "attention"}, el("h2", {id: "attention"}, "What needs attention"), alertList(model, folded(model, alerts(model)))),
        el("section", {"aria-labelledby": "devices"}, el("h2", {id: "devices"}, "Devices, and who fills them"),
           devices.length === 0 ? el("p", {class: "empty"}, "No program has opened a device yet.") :
               el("div", {class: "cards"}, devices.map((device) => card(model, device))),
           others === 0 ? null : el("p", {class: "empty"}, `Ledgers name ${others} more, which this node does not have.`)),
        el("section", {"aria-labelledby": "denials"}, el("h2", {id: "denials"}, "Last denials"),
           eventList(model, model.events.filter(isDenial).slice(0, 8),
                     {id: "denials", caption: "Last denials", empty: "Nothing was denied lately."})),
        churn(model),
    ];
}
