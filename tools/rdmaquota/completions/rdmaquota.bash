# bash completion for rdmaquota: the words come from the program itself.

_rdmaquota() {
    local line word i
    local -a words

    # After --, another program is completed.
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then
            if declare -F _command_offset >/dev/null; then
                _command_offset $((i + 1))
            elif ((i + 1 == COMP_CWORD)); then
                mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
            else
                compopt -o default
            fi
            return
        fi
    done

    # The line itself is taken apart, since COMP_WORDS is split at each "=".
    line=${COMP_LINE:0:COMP_POINT}
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    mapfile -t COMPREPLY < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
    for word in "${COMPREPLY[@]}"; do
        [[ $word == *= ]] && compopt -o nospace
    done
}

complete -o default -F _rdmaquota rdmaquota
