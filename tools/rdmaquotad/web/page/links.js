// Links to tenants, devices and processes.
import {el} from "./dom.js";
import {named} from "./format.js";

export const link = {
    tenant: (name) => el("a", {href: `#/tenant/${encodeURIComponent(name)}`}, named(name)),
    device: (name) => el("a", {href: `#/device/${encodeURIComponent(name)}`}, named(name)),
    // {tenant, comm, user, pid (null: the node's is not known), inner: the pid in its container}, as "gpt_train (pid 4711, alice)".
    // A pid that only a container knows leads nowhere here.
    process: ({tenant, comm, user, pid, inner}) => {
        const known = pid ? `pid ${pid}` : `pid ${inner} of a container`;
        const words = named(`${comm || "?"} (${[known, user].filter(Boolean).join(", ")})`);
        return pid && tenant ? el("a", {href: `#/tenant/${encodeURIComponent(tenant)}/pid/${pid}`}, words) : words;
    },
};
