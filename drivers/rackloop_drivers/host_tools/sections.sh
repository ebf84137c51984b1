# What the scripts that come after this one have in common; the first argument is how long a tool may take, in seconds.
# Every section begins with a line that a record separator (ASCII 30) starts, on both streams; JSON never has one.
wait_s=$1
shift
PATH=$PATH:/usr/sbin:/sbin
export PATH LC_ALL=C

begin() {
    printf '\036%s\n' "$*"
    printf '\036%s\n' "$*" >&2
}

ask() {
    begin "$1 $2"
    shift 2
    timeout "$wait_s" "$@"
    printf '\036status %s\n' "$?"
}
