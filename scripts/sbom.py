"""Writes the crates of the program and the Python module as a CycloneDX document, and checks that
deny.toml allows their licences and sources.

    scripts/sbom.py FILE

The document has no date: one commit has one document. The exit code is 1 if a crate is not allowed.
"""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DENY = tomllib.loads((ROOT / "deny.toml").read_text("utf-8"))
LOCK = tomllib.loads((ROOT / "Cargo.lock").read_text("utf-8"))["package"]


def cargo(*arguments: str) -> str:
    """What cargo prints."""
    return subprocess.run(
        ["cargo", *arguments, "--locked"], cwd=ROOT, check=True, stdout=subprocess.PIPE
    ).stdout.decode()


def compiled(target: str) -> set[str]:
    """The purls of what is linked or runs while compiling: tests and benches are in no release."""
    lines = cargo(
        "tree",
        "-p=exactfed",
        "-p=exactfed-python",
        "-e=normal,build",
        "--prefix=none",
        f"--target={target}",
    )
    words = (line.split() for line in lines.splitlines() if line)
    return {f"pkg:cargo/{name}@{version[1:]}" for name, version, *_ in words}


def allowed(licence: str) -> bool:
    """Whether an SPDX expression holds for what deny.toml allows; `/` is an old `OR`."""

    def term(match: re.Match[str]) -> str:
        word = match[0]
        return word.lower() if word in ("AND", "OR") else str(word in DENY["licenses"]["allow"])

    text = re.sub(r"[\w.+-]+( WITH [\w.-]+)?", term, licence.replace("/", " OR "))
    return bool(text) and eval(text, {"__builtins__": {}})


def component(package: dict, purl: str, hashes: dict[str, str]) -> dict:
    kind = "application" if package["name"] == "exactfed" else "library"
    found = {
        "type": kind,
        "bom-ref": purl,
        "name": package["name"],
        "version": package["version"],
        "purl": purl,
    }
    found["licenses"] = [{"expression": (package["license"] or "NONE").replace("/", " OR ")}]
    if purl in hashes:
        found["hashes"] = [{"alg": "SHA-256", "content": hashes[purl]}]
    return found


def main(file: str) -> int:
    targets = DENY["graph"]["targets"]
    metadata = json.loads(
        cargo(
            "metadata", "--format-version=1", *(f"--filter-platform={target}" for target in targets)
        )
    )
    purls = {
        package["id"]: f"pkg:cargo/{package['name']}@{package['version']}"
        for package in metadata["packages"]
    }
    used = set().union(*map(compiled, targets))
    packages = {purls[package["id"]]: package for package in metadata["packages"]}
    hashes = {
        f"pkg:cargo/{entry['name']}@{entry['version']}": entry["checksum"]
        for entry in LOCK
        if "checksum" in entry
    }
    components = [component(packages[purl], purl, hashes) for purl in sorted(used)]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": next(part for part in components if part["name"] == "exactfed")},
        "components": [part for part in components if part["name"] != "exactfed"],
        "dependencies": [
            {
                "ref": purls[node["id"]],
                "dependsOn": sorted({purls[to] for to in node["dependencies"]} & used),
            }
            for node in metadata["resolve"]["nodes"]
            if purls[node["id"]] in used
        ],
    }
    Path(file).write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    sources = [None, *(f"registry+{registry}" for registry in DENY["sources"]["allow-registry"])]
    facts = {purl: (packages[purl]["license"], packages[purl]["source"]) for purl in sorted(used)}
    refused = [
        purl
        for purl, (licence, source) in facts.items()
        if not allowed(licence or "") or source not in sources
    ]
    for purl in refused:
        print("error: {}: licence {}, source {}".format(purl, *facts[purl]))
    print(f"{len(components)} crates")
    return bool(refused)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
