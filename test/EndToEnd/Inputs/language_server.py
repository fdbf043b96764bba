"""A session with lowtide-lsp-server as an editor has it: hover over an op, completion of op names. Fails with what differs."""

import json
import subprocess

TEXT = """func.func @train(%x: tensor<4xf32> {train.binding = #train.batch<"x">}) -> tensor<4xf32> {
  %0 = nn.softplus %x : tensor<4xf32>
  %1 = nn.reshape %0 : tensor<4xf32> -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""
URI = "file:///step.mlir"


class Session:
    def __init__(self):
        self.process = subprocess.Popen(["lowtide-lsp-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.number = self.version = 0
        self.said = []

    def send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def receive(self):
        length = 0
        while line := self.process.stdout.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return json.loads(self.process.stdout.read(length))

    def request(self, method, **parameters):
        self.number += 1
        self.send({"id": self.number, "method": method, "params": parameters})
        while True:
            reply = self.receive()
            if reply.get("id") == self.number:
                return reply["result"]
            if reply.get("method") == "textDocument/publishDiagnostics":
                self.said = reply["params"]["diagnostics"]

    def show(self, text):
        self.version += 1
        document = {"uri": URI, "version": self.version}
        if self.version == 1:
            self.send({"method": "textDocument/didOpen", "params": {"textDocument": {**document, "languageId": "mlir", "text": text}}})
        else:
            self.send({"method": "textDocument/didChange", "params": {"textDocument": document, "contentChanges": [{"text": text}]}})

    def at(self, method, line, character):
        return self.request(f"textDocument/{method}", textDocument={"uri": URI}, position={"line": line, "character": character})

    def close(self):
        self.request("shutdown")
        self.send({"method": "exit"})
        self.process.stdin.close()
        return self.process.wait(timeout=60)


def main():
    session = Session()
    offered = session.request("initialize", processId=None, capabilities={}, rootUri=None)["capabilities"]
    assert offered["hoverProvider"] and "." in offered["completionProvider"]["triggerCharacters"], offered

    session.show(TEXT)
    shown = session.at("hover", 1, 12)["contents"]["value"]
    for part in ('"nn.softplus"', "_Log(1 + exp(x)), without overflow_", "operation ::= `nn.softplus` $x attr-dict `:` type($x)", "Operands:", "Generic Form:"):
        assert part in shown, f"hover over nn.softplus lacks {part!r}:\n{shown}"
    assert "Interfaces:" not in shown, shown
    shown = session.at("hover", 2, 12)["contents"]["value"]
    assert "operation ::= `nn.reshape`" in shown, shown
    # Where no op of ours is, nothing is added.
    shown = session.at("hover", 3, 4)["contents"]["value"]
    assert shown.startswith('"func.return"') and "operation ::=" not in shown, shown

    named = {}
    for dialect in ("nn", "train", "plan", "onnx"):
        session.show(TEXT.replace("nn.softplus %x", f"{dialect}."))
        items = [i for i in session.at("completion", 1, len(f"  %0 = {dialect}."))["items"] if i["detail"] == "operation"]
        named |= {f"{dialect}.{item['label']}": item for item in items}
    assert {"nn.exp", "nn.dot", "train.adamw", "plan.launch", "onnx.node"} <= set(named), sorted(named)
    assert len([n for n in named if n.startswith("nn.")]) >= 100, len(named)
    assert "Natural exponential" in named["nn.exp"]["documentation"]["value"], named["nn.exp"]
    assert "weight_decay" in named["train.adamw"]["documentation"]["value"], named["train.adamw"]

    # MLIR's parser would reserve memory for four billion results; it is shown a number that it can refuse, at the same place.
    assert offered["textDocumentSync"]["change"] == 1, offered
    session.show(TEXT.replace("nn.reshape %0", "nn.reshape %0#4294967295"))
    session.at("hover", 1, 12)
    [error] = session.said
    assert error["range"]["start"] == {"line": 2, "character": 18} and "number" in error["message"], error
    session.show(TEXT)
    session.at("hover", 1, 12)
    assert session.said == [], session.said
    code = session.close()
    assert code == 0, f"the server ended with {code}"
    print(f"{len(named)} ops are completed")


main()
