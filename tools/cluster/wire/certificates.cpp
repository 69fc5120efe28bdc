#include <sys/stat.h>

#include <fmt/core.h>

#include "tools/cluster/wire/mailbox.hpp"
#include "tools/common/text/file_text.hpp"

namespace rdmaquota::cluster {

Result<Certificates> Certificates::read(const std::string& directory) {
    Certificates all;
    for (const auto& [name, text] : {std::pair{"ca.pem", &all.ca}, {"cert.pem", &all.certificate}, {"key.pem", &all.key}}) {
        const auto path = directory + "/" + name;
        *text = file_text(path);
        if (text->empty()) return Error{fmt::format("{} cannot be read, or is empty: docs/cluster.md says how certificates are made", path)};
    }
    struct stat status {};
    const auto key = directory + "/key.pem";
    if (::stat(key.c_str(), &status) == 0 && (status.st_mode & 077) != 0)
        return Error{fmt::format("{} can be read by others: chmod 600 {}", key, key)};
    return all;
}

}  // namespace rdmaquota::cluster
