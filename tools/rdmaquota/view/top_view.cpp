#include "tools/rdmaquota/view/top_view.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include <fmt/core.h>

#include "tools/common/events/event_text.hpp"
#include "tools/common/tenants/names.hpp"

namespace rdmaquota {
namespace {

// The columns of a process or a device.
constexpr std::array main_resources{Resource::qp,         Resource::cq, Resource::mr, Resource::mr_bytes,
                                    Resource::hca_object, Resource::pd, Resource::srq};

TopCell word(std::string_view text) { return {printable(text), 0}; }

TopCell number(Resource resource, std::uint64_t amount) {
    return {format_amount(resource, amount), amount == unlimited ? -1.0 : static_cast<double>(amount)};
}

const TopCell nothing{"-", -1};

// With "+" above the soft limit, as `show` has it.
TopCell usage(const ResourceView& view) {
    auto cell = number(view.resource, view.used());
    if (view.above_soft()) cell.text += " +";
    return cell;
}

// In per cent; negative where there is none.
double fullness(const ResourceView& view) {
    const auto share = share_of_limit(view.used(), view.limit);
    return share < 0 ? -1 : 100 * share;
}

TopCell per_cent(double value) { return {value < 0 ? "-" : fmt::format("{:.0f}", value), value}; }

double fullest(const DeviceView& device) {
    double most = -1;
    for (const auto& view : device.resources) most = std::max(most, fullness(view));
    return most;
}

void add_main_columns(TopTable& table) {
    table.columns.push_back({"FULL%", Align::right});
    table.ties = table.columns.size();
    for (const auto resource : main_resources) {
        std::string name(info(resource).name);
        std::transform(name.begin(), name.end(), name.begin(),
                       [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
        table.columns.push_back({name, Align::right});
    }
}

// "412 calls, 3.2 s"
TopCell delayed(const Ledger::Delays& delays) {
    return {fmt::format("{} call{}, {}", delays.calls, delays.calls == 1 ? "" : "s", seconds_words(delays.ns)), static_cast<double>(delays.ns)};
}

// Without resources of which nothing is used, which would fill the screen.
TopTable by_tenant(const std::vector<TenantView>& tenants) {
    TopTable table;
    table.columns = {{"TENANT", Align::left}, {"DEVICE", Align::left}, {"RESOURCE", Align::left},
                     {"USAGE", Align::right}, {"LIMIT", Align::right}, {"FULL%", Align::right},
                     {"PEAK", Align::right}, {"DEBT", Align::right}, {"EARMARKED", Align::right}, {"DELAYED", Align::right}};
    for (const auto& tenant : tenants) {
        for (const auto& device : tenant.devices)
            for (const auto& view : device.resources) {
                if (view.used() == 0 && view.earmarked == 0) continue;
                table.rows.push_back({word(tenant.name), word(device.name), word(info(view.resource).name), usage(view),
                                      number(view.resource, view.limit), per_cent(fullness(view)),
                                      view.peak ? number(view.resource, *view.peak) : nothing,
                                      view.debt() != 0 ? number(view.resource, view.debt()) : nothing,
                                      view.earmarked != 0 ? number(view.resource, view.earmarked) : nothing, nothing});
            }
        for (const auto& view : tenant.rates)
            if (view.delays.calls != 0)
                table.rows.push_back({word(tenant.name), word(view.device), word(info(view.rate).name), nothing, number(view.rate, view.limit),
                                      nothing, nothing, nothing, nothing, delayed(view.delays)});
    }
    table.ties = 3;
    return table;
}

// Nothing where it is not known: of the sum over devices, only what is limited.
using Usage = std::array<std::optional<std::uint64_t>, resource_count>;

Usage no_usage(const std::string& device) {
    Usage usage{};
    if (device != total_device) usage.fill(0);
    return usage;
}

void add_usage(Usage& sum, const DeviceView& device) {
    for (const auto& view : device.resources) {
        auto& of = sum[index(view.resource)];
        of = of.value_or(0) + view.used();
    }
}

// The sum of all tenants that have processes; FULL% is of the tenant that is fullest.
struct DeviceSum {
    std::size_t holders = 0;
    double fullest = -1;
    Usage usage{};
};

std::size_t holders_of(const TenantView& tenant, const std::string& device) {
    return static_cast<std::size_t>(
        std::count_if(tenant.processes.begin(), tenant.processes.end(), [&](const ProcessView& process) {
            return std::any_of(process.devices.begin(), process.devices.end(),
                               [&](const DeviceView& held) { return held.name == device; });
        }));
}

std::map<std::string, DeviceSum> add_up(const std::vector<TenantView>& tenants) {
    std::map<std::string, DeviceSum> sums;
    for (const auto& tenant : tenants)
        for (const auto& device : tenant.devices) {
            auto& sum = sums.try_emplace(device.name, DeviceSum{0, -1, no_usage(device.name)}).first->second;
            sum.fullest = std::max(sum.fullest, fullest(device));
            sum.holders += holders_of(tenant, device.name);
            if (!tenant.is_sum) add_usage(sum.usage, device);
        }
    return sums;
}

void add_main_cells(std::vector<TopCell>& row, double full, const Usage& usage) {
    row.push_back(per_cent(full));
    for (const auto resource : main_resources)
        row.push_back(usage[index(resource)] ? number(resource, *usage[index(resource)]) : nothing);
}

TopTable by_device(const std::vector<TenantView>& tenants) {
    TopTable table;
    table.columns = {{"DEVICE", Align::left}, {"PROCS", Align::right}};
    add_main_columns(table);
    for (const auto& [name, sum] : add_up(tenants)) {
        const TopCell holders{std::to_string(sum.holders), static_cast<double>(sum.holders)};
        std::vector<TopCell> row{word(name), name == total_device ? nothing : holders};
        add_main_cells(row, sum.fullest, sum.usage);
        table.rows.push_back(std::move(row));
    }
    return table;
}

TopCell user_cell(uid_t user) {
    static std::map<uid_t, std::string> names;  // asked once for each
    const auto known = names.find(user);
    return word(known != names.end() ? known->second : names.emplace(user, user_name(user)).first->second);
}

TopTable by_process(const std::vector<TenantView>& tenants) {
    TopTable table;
    table.columns = {{"PID", Align::right},  {"USER", Align::left},   {"TENANT", Align::left},
                     {"COMMAND", Align::left}, {"DEVICE", Align::left}};
    add_main_columns(table);
    table.columns.push_back({"CGROUP", Align::left});
    for (const auto& tenant : tenants)
        for (const auto& process : tenant.processes)
            for (const auto& device : process.devices) {
                std::vector<TopCell> row{{pid_text(process), static_cast<double>(process.pid)}, user_cell(process.uid),
                                         word(tenant.name), word(process.comm), word(device.name)};
                auto used = no_usage(device.name);
                add_usage(used, device);
                add_main_cells(row, fullest(device), used);
                row.push_back(process.cgroup.empty() ? nothing : word(process.cgroup));
                table.rows.push_back(std::move(row));
            }
    return table;
}

double fullest_on(const TenantView& tenant, const std::string& device) {
    const auto found = std::find_if(tenant.devices.begin(), tenant.devices.end(), [&](const DeviceView& view) { return view.name == device; });
    return found == tenant.devices.end() ? -1 : fullest(*found);
}

// A user on a device: what all of the user's processes hold there; FULL% is of the process or of the tenant, whichever is fuller.
TopTable by_user(const std::vector<TenantView>& tenants) {
    TopTable table;
    table.columns = {{"USER", Align::left}, {"TENANT", Align::left}, {"DEVICE", Align::left}, {"PROCS", Align::right}};
    add_main_columns(table);
    std::map<std::tuple<uid_t, std::string, std::string>, DeviceSum> sums;
    for (const auto& tenant : tenants)
        for (const auto& process : tenant.processes)
            for (const auto& device : process.devices) {
                auto& sum = sums.try_emplace({process.uid, tenant.name, device.name},
                                             DeviceSum{0, -1, no_usage(device.name)}).first->second;
                ++sum.holders;
                sum.fullest = std::max({sum.fullest, fullest(device), fullest_on(tenant, device.name)});
                add_usage(sum.usage, device);
            }
    for (const auto& [who, sum] : sums) {
        std::vector<TopCell> row{user_cell(std::get<0>(who)), word(std::get<1>(who)), word(std::get<2>(who)),
                                 {std::to_string(sum.holders), static_cast<double>(sum.holders)}};
        add_main_cells(row, sum.fullest, sum.usage);
        table.rows.push_back(std::move(row));
    }
    return table;
}

void sort_rows(TopTable& table, const TopState& state) {
    const bool words = table.columns[state.sort].align == Align::left;
    const auto before = [&](const TopCell& a, const TopCell& b) { return words ? a.text < b.text : a.key > b.key; };
    std::stable_sort(table.rows.begin(), table.rows.end(),
                     [&](const auto& a, const auto& b) { return a[table.ties].key > b[table.ties].key; });
    std::stable_sort(table.rows.begin(), table.rows.end(), [&](const auto& a, const auto& b) {
        return state.reverse ? before(b[state.sort], a[state.sort]) : before(a[state.sort], b[state.sort]);
    });
}

bool contains_ignoring_case(std::string_view text, std::string_view part) {
    const auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
    return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

void filter_rows(TopTable& table, const std::string& filter) {
    if (filter.empty()) return;
    std::erase_if(table.rows, [&](const auto& row) {
        for (std::size_t i = 0; i < row.size(); ++i)
            if (table.columns[i].align == Align::left && contains_ignoring_case(row[i].text, filter)) return false;
        return true;
    });
}

// In which no row has anything; but not the one that is sorted by.
bool is_empty_column(const TopTable& table, std::size_t column, std::size_t sorted) {
    return column != sorted && std::all_of(table.rows.begin(), table.rows.end(), [column](const auto& row) {
               return row[column].text == nothing.text || row[column].text == "0";
           });
}

void remove_empty_columns(TopTable& table, std::size_t& sorted) {
    if (table.rows.empty()) return;
    for (std::size_t i = table.columns.size(); i-- > 1;) {
        if (!is_empty_column(table, i, sorted)) continue;
        const auto at = static_cast<std::ptrdiff_t>(i);
        table.columns.erase(table.columns.begin() + at);
        for (auto& row : table.rows) row.erase(row.begin() + at);
        if (i < sorted) --sorted;
    }
}

// Names of jobs and cgroups differ at their ends.
std::string shortened_in_the_middle(const Terminal& terminal, const std::string& text, std::size_t width) {
    if (cells_of(text) <= width) return text;
    const std::string_view rest = terminal.unicode ? "…" : "...";
    if (width < cells_of(rest) + 2 || cells_of(text) != text.size()) return shortened(terminal, text, width);
    const auto kept = width - cells_of(rest);
    return text.substr(0, kept - kept / 2).append(rest) + text.substr(text.size() - kept / 2);
}

std::vector<std::size_t> column_widths(const TopTable& table) {
    std::vector<std::size_t> widths;
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
        widths.push_back(table.columns[i].name.size());
        for (const auto& row : table.rows) widths[i] = std::max(widths[i], cells_of(row[i].text));
    }
    return widths;
}

// Words give way to numbers: names are shortened, the longest first, until all columns but the last one fit, if that helps.
void shorten_names(TopTable& table, std::size_t width, const Terminal& terminal) {
    constexpr std::size_t least = 10;
    auto widths = column_widths(table);
    const auto wanted = [&] {
        return std::accumulate(widths.begin(), widths.end(), std::size_t{0}) + 2 * (widths.size() - 1) -
               (table.columns.back().align == Align::left ? widths.back() + 2 : 0);
    };
    while (wanted() > width) {
        std::size_t longest = widths.size();
        for (std::size_t i = 0; i + 1 < widths.size(); ++i)
            if (table.columns[i].align == Align::left && widths[i] > least &&
                (longest == widths.size() || widths[i] > widths[longest]))
                longest = i;
        if (longest == widths.size()) break;
        --widths[longest];
    }
    for (auto& row : table.rows)
        for (std::size_t i = 0; i + 1 < row.size(); ++i)
            if (table.columns[i].align == Align::left) row[i].text = shortened_in_the_middle(terminal, row[i].text, widths[i]);
}

// Each cell ends where its column does; the line stops before the first column that does not fit.
std::string line(const TopTable& table, const std::vector<std::size_t>& widths, std::size_t width,
                 const std::function<std::string(std::size_t)>& text, const std::function<Colour(std::size_t)>& colour,
                 const Terminal& terminal) {
    std::string result;
    std::size_t used = 0;
    for (std::size_t i = 0; i < widths.size(); ++i) {
        const std::size_t gap = i == 0 ? 0 : 2;
        if (used + gap + widths[i] > width) break;
        used += gap + widths[i];
        const auto cell = text(i);
        const std::string padding(widths[i] - std::min(widths[i], cells_of(cell)), ' ');
        const auto shown = coloured(terminal, colour(i), cell);
        result += std::string(gap, ' ') + (table.columns[i].align == Align::right ? padding + shown : shown + padding);
    }
    return result;
}

}  // namespace

TopTable top_table(const std::vector<TenantView>& tenants, TopView view) {
    if (view == TopView::tenant) return by_tenant(tenants);
    if (view == TopView::user) return by_user(tenants);
    return view == TopView::device ? by_device(tenants) : by_process(tenants);
}

std::vector<std::string> title_lines(const std::string& title, std::size_t width) {
    Terminal line;
    line.width = width;
    auto text = wrapped(line, title, 0);
    const auto end = text.find('\n');
    if (end == text.npos) return {std::move(text), ""};
    const auto second = text.substr(end + 1);
    return {text.substr(0, end), second.substr(0, second.find('\n'))};
}

std::vector<std::string> top_help() {
    return {"t        tenants, a line for each device and resource",
            "u, p, d  users, processes, devices",
            "< >      or left and right: sort by another column",
            "r        turn the order around",
            "up down  scroll",
            "/        only lines with a word that contains what you type;",
            "         Enter keeps it, Esc shows all again",
            "q        end; Ctrl-Z stops, and gives the terminal back",
            "",
            "FULL%    how much of a limit is used; of a device or process,",
            "         of the limit that is closest to full",
            "+        above a soft limit",
            "DEBT     used above its share",
            "DELAYED  calls that a rate delayed so far, and by how long",
            "-        not known, or 0 of 0",
            "",
            "Any key goes on."};
}

std::size_t first_sort(TopView view) {
    if (view == TopView::tenant || view == TopView::process) return 5;
    return view == TopView::device ? 2 : 4;
}

std::vector<std::string> lay_out(TopTable& table, TopState& state, std::size_t width, std::size_t height,
                                 const Terminal& terminal) {
    state.sort = std::min(state.sort, table.columns.size() - 1);
    filter_rows(table, state.filter);
    const auto shown = std::min(height - 1, table.rows.size());
    state.offset = std::min(state.offset, table.rows.size() - shown);
    sort_rows(table, state);
    auto sorted = state.sort;
    remove_empty_columns(table, sorted);
    shorten_names(table, width, terminal);
    const auto widths = column_widths(table);
    std::vector<std::string> lines{line(
        table, widths, width, [&](std::size_t i) { return table.columns[i].name; },
        [&](std::size_t i) { return i == sorted ? Colour::green : Colour::bold; }, terminal)};
    for (auto row = state.offset; row < table.rows.size() && lines.size() < height; ++row)
        lines.push_back(line(
            table, widths, width, [&](std::size_t i) { return table.rows[row][i].text; },
            [&](std::size_t i) {
                if (table.columns[i].name != "FULL%" || table.rows[row][i].key < 80) return Colour::none;
                return table.rows[row][i].key < 100 ? Colour::yellow : Colour::red;
            },
            terminal));
    return lines;
}

}  // namespace rdmaquota
