#compdef rdmaquotad
# zsh completion for rdmaquotad.

_arguments '--dir[quota directory]:directory:_files -/' '--policy[policy file of a reload]:file:_files' \
    '--version[print the version]' '--help[print the options]'
