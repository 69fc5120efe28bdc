// One device: all of its resources, and for each who uses most.
import {alertList, alerts, folded} from "./alerts.js";
import {el, table} from "./dom.js";
import {amount, clean, percent} from "./format.js";
import {link} from "./links.js";
import {Model} from "./model.js";
import {churn, useRow} from "./overview.js";
import {levelOf} from "./tenants.js";

const most = 20;  // tenants

function tenants(model, use) {
    const {name, unit} = model.resources[use.resource];
    const rows = use.shares.slice(0, most).map(({tenant, cell}) => ({
        key: tenant.name, class: levelOf(cell),
        cells: [link.tenant(tenant.name), amount(cell.used, unit), percent(cell.used, use.used), amount(cell.limit, unit),
                amount(cell.peak, unit)],
    }));
    return table(`Tenants by ${name}`, [{title: "Tenant"}, {title: "Used", number: true}, {title: "Of all", number: true},
                                        {title: "Limit", number: true}, {title: "Peak", number: true}], rows, "Nobody uses it.");
}

function processes(model, use) {
    const {name, unit} = model.resources[use.resource];
    const rows = model.processes(use.device, use.resource).map((one) => ({
        key: `${one.tenant.name} ${one.pid} ${one.inner} ${one.comm}`,
        cells: [link.process({...one, tenant: one.tenant.name}), link.tenant(one.tenant.name),
                amount(one.used, unit)],
    }));
    return table(`Processes that use most ${name}`, [{title: "Process"}, {title: "Tenant"}, {title: "Used", number: true}], rows, "None.");
}

export function devicePage(model, name) {
    const device = model.device(name);
    if (device < 0) {
        return [el("h2", {}, "Device ", clean(name)), el("p", {class: "empty"}, "It is not in use.")];
    }
    const uses = model.uses(device).sort((a, b) => Model.pressure(b) - Model.pressure(a) || b.used - a.used);
    const here = folded(model, alerts(model).filter((one) => one.device === name));
    return [
        el("section", {}, el("h2", {}, "Device ", clean(name)), here.length === 0 ? null : alertList(here)),
        ...uses.map((use) => {
            const {name: resource, words} = model.resources[use.resource];
            return el("section", {"data-key": resource, class: "card", "aria-label": resource},
                      el("h3", {}, resource, " ", el("small", {}, words)),
                      el("ul", {class: "uses"}, useRow(model, use, false)),
                      el("details", {open: uses.indexOf(use) < 3}, el("summary", {}, `Who uses ${resource}`), tenants(model, use), processes(model, use)));
        }),
        churn(model, (rate) => rate.device === name),
    ];
}
