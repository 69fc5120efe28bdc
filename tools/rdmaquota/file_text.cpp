#include "tools/rdmaquota/file_text.hpp"

#include <fstream>
#include <sstream>

namespace rdmaquota {

// Not by std::istreambuf_iterator: it throws when a file that could be opened cannot be read.
std::string file_text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

}  // namespace rdmaquota
