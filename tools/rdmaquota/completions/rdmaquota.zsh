#compdef rdmaquota
# zsh completion for rdmaquota: the words come from the program itself.

_rdmaquota() {
    local -i dashes=${words[(i)--]}
    local -a candidates

    # After --, another program is completed.
    if (( dashes < CURRENT )); then
        (( CURRENT -= dashes ))
        shift $dashes words
        _normal
        return
    fi

    candidates=(${(f)"$(${words[1]} __complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( ! $#candidates )); then
        _files
        return
    fi
    compadd -S '' -- ${(M)candidates:#*=}
    compadd -- ${candidates:#*=}
}

if [[ $funcstack[1] == _rdmaquota ]]; then
    _rdmaquota "$@"
else
    compdef _rdmaquota rdmaquota
fi
