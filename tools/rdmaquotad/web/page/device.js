// One device: all of its resources, and for each who uses most.
import {alertList, alerts, folded} from "./alerts.js";
import {el} from "./dom.js";
import {amount, clean, percent} from "./format.js";
import {link} from "./links.js";
import {Model} from "./model.js";
import {churn, useRow} from "./overview.js";
import {table} from "./table.js";
import {figureColumns, levelOf} from "./tenants.js";

const figures = figureColumns.filter(({title}) => ["Of limit", "Limit now", "Peak"].includes(title));

function tenants(model, use) {
    const {name, unit} = model.resources[use.resource];
    const columns = [
        {title: "Tenant", cell: ({tenant}) => link.tenant(tenant.name), value: ({tenant}) => tenant.name},
        {title: "Used", number: true, cell: ({cell}) => amount(cell.used, unit), value: ({cell}) => cell.used},
        {title: "Of all", number: true, cell: ({cell}) => percent(cell.used, use.used), value: ({cell}) => cell.used}, ...figures,
    ];
    return table({id: `tenants-${name}`, caption: `Tenants by ${name}`, columns, sort: "-used", most: 20, empty: "Nobody uses it.",
                  items: use.shares.map((share) => ({...share, unit})), row: ({tenant, cell}) => ({key: tenant.name, class: levelOf(cell)})});
}

function processes(model, use) {
    const {name, unit} = model.resources[use.resource];
    const columns = [
        {title: "Process", cell: (one) => link.process({...one, tenant: one.tenant.name})},
        {title: "Tenant", cell: ({tenant}) => link.tenant(tenant.name)},
        {title: "Used", number: true, cell: ({used}) => amount(used, unit)},
    ];
    return table({id: `processes-${name}`, caption: `Processes that use most ${name}`, columns, empty: "None.",
                  items: model.processes(use.device, use.resource), row: (one) => ({key: `${one.tenant.name} ${one.pid} ${one.inner} ${one.comm}`})});
}

export function devicePage(model, name) {
    const device = model.device(name);
    if (device < 0) {
        return [el("h2", {}, "Device ", clean(name)), el("p", {class: "empty"}, "It is not in use.")];
    }
    const uses = model.uses(device).sort((a, b) => Model.pressure(b) - Model.pressure(a) || b.used - a.used);
    const here = folded(model, alerts(model).filter((one) => one.device === name));
    return [
        el("section", {}, el("h2", {}, "Device ", clean(name)), here.length === 0 ? null : alertList(model, here)),
        ...uses.map((use, i) => {
            const {name: resource, words} = model.resources[use.resource];
            return el("section", {"data-key": resource, class: "card", "aria-label": resource},
                      el("h3", {}, resource, " ", el("small", {}, words)),
                      el("ul", {class: "uses"}, useRow(model, use, false)),
                      el("details", {open: i < 3}, el("summary", {}, `Who uses ${resource}`), tenants(model, use), processes(model, use)));
        }),
        churn(model, (rate) => rate.device === name),
    ];
}
