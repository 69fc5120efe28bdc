// How far this node is covered: what the sidecar sees, the guard, who goes around, what `doctor` finds.
import {aroundWords} from "./alerts.js";
import {el} from "./dom.js";
import {amount, clean, command, named} from "./format.js";
import {link} from "./links.js";
import {table} from "./table.js";

const states = {
    off: "off: programs that go around the library are only reported", watch: "watches: it counts what exceeds a limit, and refuses nothing",
    deny: "on: the kernel refuses what exceeds a limit", starting: "on: the kernel refuses what exceeds a limit",
};

function guard(model) {
    const {guard: state} = model.node;
    const [caption, title, empty] = state.state === "watch" ?
        ["Creations that it would have refused", "Would have refused", "It would have refused nothing."] :
        ["Creations that it refused", "Refused", "It has refused nothing."];
    const columns = [
        {title: "Tenant", cell: ([tenant]) => link.tenant(tenant), value: ([tenant]) => tenant},
        {title: "Device", cell: ([, device]) => named(device), value: ([, device]) => device},
        {title: "Resource", cell: ([, , resource]) => resource, value: ([, , resource]) => resource},
        {title, number: true, cell: ([, , , count]) => amount(count, "count"), value: ([, , , count]) => count},
    ];
    return el("section", {"aria-labelledby": "guard"}, el("h2", {id: "guard"}, "The guard in the kernel"),
              el("p", {}, `It is ${states[state.state] ?? clean(state.state)}.`),
              state.state === "off" ? null : table({id: "refused", caption, columns, items: model.refused, empty, most: 60,
                                                    row: (refused) => ({key: refused.slice(0, 3).join(" ")}),
                                                    sort: `-${title.toLowerCase().replaceAll(" ", "-")}`}));
}

function bypasses(model) {
    const columns = [
        {title: "Process", cell: (bypass) => link.process(bypass), value: ({comm}) => comm},
        {title: "Tenant", cell: ({tenant}) => link.tenant(tenant), value: ({tenant}) => tenant},
        {title: "Device", cell: ({device}) => link.device(device), value: ({device}) => device},
        {title: "Cgroup", cell: ({cgroup}) => clean(cgroup || "–"), value: ({cgroup}) => cgroup},
        {title: "What", cell: (bypass) => model.bypassWords(bypass)},
    ];
    return el("section", {"aria-labelledby": "bypasses"}, el("h2", {id: "bypasses"}, "Who goes around the quota"),
              aroundWords(model) ??
                  table({id: "bypasses", caption: "Processes that have more in the kernel than they are charged for", columns,
                         items: model.bypasses, row: ({pid, device}) => ({key: `${pid} ${device}`})}));
}

function coverage(model) {
    const {findings, kernel} = model.node;
    const columns = [
        {title: "Subject", cell: ({subject}) => clean(subject)}, {title: "Level", cell: ({level}) => clean(level)},
        {title: "Finding", cell: ({text}) => clean(text)},
    ];
    return el("section", {"aria-labelledby": "coverage"}, el("h2", {id: "coverage"}, "Coverage of this node"),
              kernel.not_seen.length === 0 ? el("p", {}, "The sidecar sees all that the kernel makes.") :
                  [el("p", {}, "What the sidecar does not see:"), el("ul", {}, kernel.not_seen.map((line) => el("li", {}, clean(line))))],
              !findings?.length ? el("p", {}, "What else there is to know of this node: ", command("rdmaquota", "doctor")) :
                  table({id: "findings", caption: "What rdmaquota doctor finds", columns, items: findings,
                         row: ({level}) => ({class: level === "problem" ? "bad" : level === "warning" ? "warn" : null})}));
}

export function nodePage(model) {
    return [bypasses(model), guard(model), coverage(model)];
}
