// The first page: what needs somebody, the devices and who fills them, the last denials.
import {alertList, alerts, folded, users} from "./alerts.js";
import {el, table} from "./dom.js";
import {eventList} from "./events.js";
import {amount, clean, percent} from "./format.js";
import {link} from "./links.js";
import {isDenial, Model, near} from "./model.js";

const shown = 4;  // resources of a device, and all that have a bound

// How much of a bound is used, by whom: the three largest tenants, and the rest. With words for those who do not see it.
export function bar(model, use) {
    const unit = model.unit(use.resource);
    const whole = Math.max(use.bound, use.used, 1);
    const level = use.used >= use.bound ? "bad" : use.used >= near * use.bound ? "warn" : "";
    const label = `${amount(use.used, unit)} of ${amount(use.bound, unit)}, ${percent(use.used, use.bound)}`;
    const largest = use.shares.slice(0, 3).map(({cell}) => cell.used);
    const parts = [...largest, Math.max(0, use.used - largest.reduce((sum, used) => sum + used, 0))];
    let left = 0;
    const pieces = parts.map((used, i) => {
        const width = Math.min(100 - left, 100 * used / whole);
        const piece = rect(`share share-${i}`, left, width);
        left += width;
        return piece;
    });
    const image = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    image.setAttribute("class", `bar ${level}`);
    image.setAttribute("viewBox", "0 0 100 8");
    image.setAttribute("preserveAspectRatio", "none");
    image.setAttribute("role", "img");
    image.setAttribute("aria-label", label);
    image.append(...pieces);
    return image;
}

function rect(className, x, width) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [name, value] of Object.entries({class: className, x, width: Math.max(0, width), y: 0, height: 8})) {
        node.setAttribute(name, value);
    }
    return node;
}

// What is left of it, or why that is not known.
function room(model, use) {
    if (use.bound === null) {
        return use.own ? "no limit" : "no node limit";
    }
    const free = `${amount(Math.max(0, use.bound - use.used), model.unit(use.resource))} free`;
    return !use.own && use.bound === use.capacity && use.bound !== use.limit ? `${free}: the device has no more` : free;
}

export function useRow(model, use, titled = true) {
    const {name, unit, words} = model.resources[use.resource];
    return el("li", {"data-key": use.own ? `${name} ${use.shares[0].tenant.name}` : name, class: "use"},
              titled ? el("p", {class: "figures"}, el("b", {}, name), " ", el("small", {}, words)) : null,
              el("p", {class: "figures"}, use.bound === null ? amount(use.used, unit) : `${amount(use.used, unit)} of ${amount(use.bound, unit)}`,
                 el("span", {class: "room"}, room(model, use))),
              use.bound === null ? null : bar(model, use),
              el("p", {class: "who"}, use.shares.length === 0 ? "nobody uses it" : users(model, use, {dots: use.bound !== null})));
}

function card(model, device) {
    const uses = model.uses(device).filter((use) => use.used > 0)
        .sort((a, b) => Model.pressure(b) - Model.pressure(a) || (b.bound !== null) - (a.bound !== null) || a.resource - b.resource);
    const first = uses.slice(0, Math.max(shown, uses.filter(({bound}) => bound !== null).length));
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
    const rows = model.fastest.filter(fits).slice(0, 8).map(({tenant, device, resource, created, destroyed}) => ({
        key: `${tenant}\n${device}\n${resource}`,
        cells: [tenant === null ? "not known" : link.tenant(tenant), link.device(device), resource,
                perSecond.format(created), perSecond.format(destroyed)],
    }));
    return el("section", {"aria-labelledby": "churn"}, heading,
              table("Churn", [{title: "Tenant"}, {title: "Device"}, {title: "Resource"}, {title: "Made", number: true},
                              {title: "Destroyed", number: true}], rows, "Nobody makes or destroys anything."));
}

export function overview(model) {
    const devices = model.deviceNumbers.filter((device) => model.hasDevice(model.devices[device]));
    const others = model.deviceNumbers.length - devices.length;
    return [
        el("section", {"aria-labelledby": "attention"}, el("h2", {id: "attention"}, "What needs attention"), alertList(folded(model, alerts(model)))),
        el("section", {"aria-labelledby": "devices"}, el("h2", {id: "devices"}, "Devices, and who fills them"),
           devices.length === 0 ? el("p", {class: "empty"}, "No program has opened a device yet.") :
               el("div", {class: "cards"}, devices.map((device) => card(model, device))),
           others === 0 ? null : el("p", {class: "empty"}, `Ledgers name ${others} more, which this node does not have.`)),
        el("section", {"aria-labelledby": "denials"}, el("h2", {id: "denials"}, "Last denials"),
           eventList(model, model.events.filter(isDenial).slice(0, 8), "Last denials", "Nothing was denied lately.")),
        churn(model),
    ];
}
