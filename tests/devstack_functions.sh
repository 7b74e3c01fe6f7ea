# The functions of devstack that devstack/plugin.sh calls, for tests without a checkout of it. In
# place of its sed scripts, the files are written by Python.

_ini() {
    python3 - "$@" <<'CODE'
import pathlib, sys

action, path, section, option, *values = sys.argv[1:]
file = pathlib.Path(path)
lines = file.read_text().splitlines() if file.exists() else []
if f"[{section}]" not in lines and action != "get":
    lines += ["", f"[{section}]"]
start = lines.index(f"[{section}]") + 1 if f"[{section}]" in lines else len(lines)
end = next((i for i in range(start, len(lines)) if lines[i].startswith("[")), len(lines))
mine = [i for i in range(start, end) if lines[i].partition("=")[0].strip() == option]
if action == "get":
    print(*(lines[i].partition("=")[2].strip() for i in mine))
else:
    kept = [line for i, line in enumerate(lines[start:end], start) if i not in mine]
    lines[start:end] = [f"{option} = {value}" for value in values] + kept
    file.write_text("\n".join(lines) + "\n")
CODE
}
iniget() { _ini get "$@"; }
iniget_multiline() { _ini get "$@"; }
iniset() { _ini set "$@"; }
iniset_multiline() { _ini set "$@"; }
