#!/usr/bin/env python3
"""Tables of the reference that something else knows: options, from the help texts of the programs; which keys of a
file are required, from its JSON schema.

    tests/docs/reference_tables.py    writes docs/reference/options.md

check_docs.py fails when the page is another, or when a table says required or optional where the schema does not.
"""
import json
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PAGE = SOURCE / "docs/reference/options.md"
SCHEMAS = SOURCE / "docs/reference/schemas"
HELP_TEXTS = [("dc-sim", SOURCE / "tests/golden"), ("dc-run", SOURCE / "tests/exec/golden")]
COMMANDS = {
    "dc-sim": ["info", "simulate", "fit", "sweep", "search", "explain", "dag", "compare", "cluster"],
    "dc-run": ["check", "step", "validate", "profile", "calibrate"],
}
HEAD = """# Options

All options, as `COMMAND --help` prints them, written by `tests/docs/reference_tables.py`. [Commands](commands.md)
explains what they do.
"""
# Tables of keys: page, heading above the table, schema.
KEY_TABLES = [("clusters.md", "A cluster file (YAML, dc-cluster/1)", "cluster"), ("clusters.md", "A GPU file", "gpu")]
SPEC_TABLE = ("plans.md", "## dc-plan-spec/1")
NEEDS = ("required", "optional")

ENTRY = re.compile(r"  (\S.*?)(?:  +(\S.*))?$")


def entries_of(text):
    """Section, name and description of what a help text lists; a long name has its description on the next line."""
    section, found = "", []
    for line in text.splitlines():
        if re.match(r"\w[\w ]*:$", line):
            section = line[:-1]
        elif section in ("Positionals", "Options", "Subcommands") and line.strip():
            match = ENTRY.match(line)
            if match:
                found.append([section, match[1], match[2] or ""])
            else:
                found[-1][2] = f"{found[-1][2]} {line.strip()}".strip()
    return found


def words_of(name):
    """`--plan TEXT ... REQUIRED` -> option, what it takes, how often and whether it has to be there."""
    required = name.endswith(" REQUIRED")
    name = name.removesuffix(" REQUIRED")
    repeated = name.endswith(" ...")
    option, _, takes = name.removesuffix(" ...").partition(" ")
    needs = [word for word, holds in (("required", required), ("repeatable", repeated)) if holds]
    takes = re.sub(r"^TEXT:\{(.*)\}$", lambda match: match[1].replace(",", " or "), takes)
    return option, {"INT": "count", "UINT": "count", "FLOAT": "number", "TEXT": "text"}.get(takes, takes), ", ".join(needs)


def rows_of(program, folder):
    """What a table shows of each option, and the commands that have it so, in the order of the commands."""
    rows = {}
    for command in COMMANDS[program]:
        for section, name, meaning in entries_of((folder / f"help-{command}" / "stdout").read_text()):
            option, takes, need = words_of(name)
            meaning = re.sub(r"[;.] may be repeated(?=$|:)", "", meaning, flags=re.I)  # need says so
            if option.startswith("-") and not option.startswith("-h,"):
                rows.setdefault((option, takes, need, meaning.replace("|", r"\|")), []).append(command)
    return rows


def table_of(program, folder):
    lines = [f"## {program}", "| option | of | takes | meaning |", "| --- | --- | --- | --- |"]
    for (option, takes, need, meaning), commands in rows_of(program, folder).items():
        takes = ", ".join(part for part in (takes, need) if part)
        lines.append(f"| `{option}` | {', '.join(commands)} | {takes} | {meaning} |")
    return "\n".join(lines) + "\n"


def options_page():
    return HEAD + "\n" + "\n".join(table_of(program, folder) for program, folder in HELP_TEXTS)


def option_page_faults():
    listed = {(program, path.parent.name.removeprefix("help-")) for program, folder in HELP_TEXTS
              for path in folder.glob("help-*/stdout")} - {("dc-sim", "make-cluster")}
    known = {(program, command) for program, commands in COMMANDS.items() for command in commands}
    yield from (f"{program} {command} is in no list" for program, command in sorted(listed - known))
    if not PAGE.exists() or PAGE.read_text() != options_page():
        yield "is not what tests/docs/reference_tables.py writes"


def resolved(schema, part):
    """A part of a schema with its references followed."""
    while "$ref" in part:
        file, _, path = part["$ref"].partition("#")
        schema = json.loads((SCHEMAS / file).read_text()) if file else schema
        part = schema
        for step in path.split("/")[1:]:
            part = part[step]
    return schema, part


def is_required(schema, key):
    """Whether the object that has the key needs it; none where the schema has no such key."""
    whole, part = schema, schema
    required = None
    for name in key.replace("[]", ".[]").split("."):
        whole, part = resolved(whole, part)
        if name == "[]":
            part = part.get("items", {})
            continue
        if name not in part.get("properties", {}):
            return None
        required = name in part.get("required", [])
        part = part["properties"][name]
    return required


def keys_of(cell):
    """`a.b`, `.c` -> a.b, a.c; names in capitals stand for others and are left out."""
    keys = []
    for key in re.findall(r"`([^`]+)`", cell):
        if key.startswith("."):
            key = keys[-1].rpartition(".")[0] + key if keys else key
        keys.append(key)
    return [key for key in keys if not re.search(r"(^|\.)[A-Z]+\b", key)]


def key_rows(page, heading):
    """Cells of the rows of the table behind a heading or sentence."""
    text = (SOURCE / "docs/reference" / page).read_text()
    table = re.search(r"\n\n((?:\|.*\n)+)", text[text.index(heading):])[1]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip("|"))] for row in table.splitlines()[2:]]


def key_faults():
    for page, heading, name in KEY_TABLES:
        schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
        for cells in key_rows(page, heading):
            for key in keys_of(cells[0]):
                required = is_required(schema, key)
                if required is None:
                    yield f"{name}: the schema has no key {key}"
                elif not cells[2].startswith(NEEDS[0] if required else NEEDS[1]):
                    yield f"{name}: {key} is {NEEDS[0] if required else NEEDS[1]}, not '{cells[2]}'"


def spec_faults():
    """Of the table of plan keys: those of the schema and no others, each with its default unless it is required."""
    spec = json.loads((SCHEMAS / "plan-spec.schema.json").read_text())
    options = json.loads((SCHEMAS / "plan-options.schema.json").read_text())
    known = {*options["properties"], *spec["$defs"]["changes"]["properties"]}
    defaults = {key: cells[2] for cells in key_rows(*SPEC_TABLE) for key in keys_of(cells[0])}
    yield from (f"the table has no {key}" for key in sorted(known - set(defaults)))
    yield from (f"the schema has no {key}" for key in sorted(set(defaults) - known))
    for key, default in defaults.items():
        if (default == NEEDS[0]) != (key in spec["required"]) or not default:
            yield f"{key}: '{default}' is no default"


if __name__ == "__main__":
    PAGE.write_text(options_page())
    sys.exit(0)
