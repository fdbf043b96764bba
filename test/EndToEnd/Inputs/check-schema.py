"""Holds configuration files against the schema: the first two fit, the third has a key that it does not know."""
import json
import re
import sys

schema, *files = (json.loads(re.sub(r"^//.*$", "", open(path, encoding="utf-8").read(), flags=re.M)) for path in sys.argv[1:])
KINDS = {"string": str, "number": (int, float), "boolean": bool, "array": list, "object": dict}


def complaints(value, rule, where=""):
    if "anyOf" in rule:
        return min((complaints(value, r, where) for r in reversed(rule["anyOf"])), key=len)
    if "enum" in rule and value not in rule["enum"]:
        return [f"{where}: {value} is none of {rule['enum']}"]
    kinds = rule.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and value != "auto" and not any(isinstance(value, KINDS[k]) for k in kinds):
        return [f"{where}: {value} is no {kinds}"]
    found = []
    if isinstance(value, dict) and "properties" in rule:
        for key, inner in value.items():
            if key in rule["properties"]:
                found += complaints(inner, rule["properties"][key], f"{where}/{key}")
            elif rule.get("additionalProperties") is False or (isinstance(rule.get("additionalProperties"), dict) and inner != "auto"):
                found.append(f"{where}/{key}: unknown")
    return found


assert schema["properties"]["loss_scale"]["type"] and schema["properties"]["emit"]["enum"][0] == "onnx"
assert schema["properties"]["threads_max"]["default"] == 64 and schema["properties"]["fuse"]["type"] == "boolean"
assert complaints(files[0], schema) == [], complaints(files[0], schema)
assert complaints(files[1], schema) == [], complaints(files[1], schema)
assert complaints(files[2], schema) == ["/optimizer/weight_decya: unknown"], complaints(files[2], schema)
