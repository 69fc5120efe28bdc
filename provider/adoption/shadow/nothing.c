/* All the code of a shadow library, and of what it is linked to in place of the real one. */
typedef int rdmaquota_nothing;
