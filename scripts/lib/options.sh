# shellcheck shell=bash
# options.sh - the build options that scripts/build, scripts/test and scripts/check have in common; to be sourced.
#
# The caller sets `program` (its name, for messages) and `usage`. After `parse_options "$@"`, build_type, compiler,
# sanitize and build_dir are set, and `rest` holds the arguments that aren't build options, for the caller to judge.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

build_type=Release
compiler=""
sanitize=""
build_dir=""
rest=()

# fail CODE TEXT: one line that names the thing and the mend. 2: asked wrongly; 3: environment.
fail() {
    echo "${program:?}: $2" >&2
    exit "$1"
}

# one_of FLAG VALUE ALLOWED...
one_of() {
    local flag=$1 value=$2 allowed
    shift 2
    for allowed in "$@"; do
        [ "$value" != "$allowed" ] || return 0
    done
    fail 2 "$flag must be one of: $*; not '$value'"
}

# Each configuration has a folder of its own, so that switching between them rebuilds nothing.
default_dir() {
    local name=build
    [ "$compiler" = gcc ] || name+=-$compiler
    [ "$build_type" = Release ] || name+=-debug
    [ -z "$sanitize" ] || name+=-$sanitize
    echo "$root/$name"
}

parse_options() {
    while [ $# -gt 0 ]; do
        case $1 in
        --type | --compiler | --sanitize | --dir)
            [ $# -ge 2 ] || fail 2 "$1 needs a value; ${usage:?}"
            case $1 in
            --type) one_of "$1" "$2" Release Debug && build_type=$2 ;;
            --compiler) one_of "$1" "$2" gcc clang && compiler=$2 ;;
            --sanitize) one_of "$1" "$2" address thread && sanitize=$2 ;;
            --dir) build_dir=$2 ;;
            esac
            shift 2
            ;;
        -h | --help)
            echo "${usage:?}"
            exit 0
            ;;
        *)
            rest+=("$1")
            shift
            ;;
        esac
    done
    # clang's run-time libraries give the clearer sanitizer reports.
    if [ -z "$compiler" ]; then
        compiler=gcc
        [ -z "$sanitize" ] || compiler=clang
    fi
    [ -n "$build_dir" ] || build_dir=$(default_dir)
    export root build_type compiler sanitize build_dir
}

# The same options again, to hand on to scripts/build.
build_options() {
    local options=(--type "$build_type" --compiler "$compiler" --dir "$build_dir")
    [ -z "$sanitize" ] || options+=(--sanitize "$sanitize")
    printf '%s\n' "${options[@]}"
}
