#include "tools/rdmaquotad/history/history_file.hpp"

#include <stdexcept>

#include <fmt/core.h>
#include <unistd.h>

#include "tools/common/text/file_text.hpp"
#include "tools/common/views/json.hpp"
#include "tools/rdmaquotad/history/history_json.hpp"

namespace rdmaquota {
namespace {

std::string path_in(const std::string& directory) { return directory + "/history.json"; }

void read_ring(const Json& json, const SeriesName& name, std::size_t ring, std::uint64_t time_s, History& history) {
    const auto& shape = ring_shapes[ring];
    const auto& usage = json.at("usage");
    const auto& peak = json.at("peak");
    const auto newest = time_s / shape.seconds;
    if (usage.size() > shape.spans || usage.size() > newest) throw std::out_of_range("too many spans");
    for (std::size_t i = 0; i < usage.size(); ++i)
        if (!usage.at(i).is_null())
            history.restore(name, ring, (newest + 1 + i - usage.size()) * shape.seconds,
                            {usage.at(i).get<std::uint64_t>(), peak.at(i).get<std::uint64_t>()});
}

void read_series(const Json& json, std::uint64_t time_s, History& history) {
    const auto resource = find_resource(json.at("resource").get<std::string>());
    if (!resource) return;  // one of another version
    const SeriesName name{json.at("tenant").get<std::string>(), json.at("device").get<std::string>(), *resource};
    for (std::size_t ring = 0; ring < ring_shapes.size(); ++ring)
        read_ring(json.at(ring_shapes[ring].name), name, ring, time_s, history);
}

}  // namespace

Result<void> save_history(const std::string& directory, const History& history, std::uint64_t time_s) {
    return replace_file(path_in(directory), *HistoryText(history, time_s, true).all());
}

Result<History> load_history(const std::string& directory, std::uint64_t now_s) try {
    History history;
    if (::access(path_in(directory).c_str(), F_OK) != 0) return history;
    const auto json = Json::parse(file_text(path_in(directory)));
    const auto time_s = json.at("time").get<std::uint64_t>();
    if (time_s > now_s) return Error{fmt::format("{} is of a later time", path_in(directory))};
    for (const auto& series : json.at("history")) read_series(series, time_s, history);
    return history;
} catch (const std::exception& failure) {
    return Error{fmt::format("{} is no history: {}", path_in(directory), failure.what())};
}

}  // namespace rdmaquota
