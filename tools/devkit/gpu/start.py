"""What every contender starts from: the same batches and the same weights, as files."""

from devkit.gpu import batches



def data_of(archive, row):
    """(--data of our programs, the files of PyTorch's inputs with commas): a recorded model's own rows, else batches made here."""
    recorded = archive.folder(row) / "data.npz"
    if recorded.exists():
        return str(recorded), ""
    if not row.get("inputs"):
        return "synthetic", ""
    paths = batches.write(archive.home / "batches" / row["name"], row["batch"], row["inputs"])
    return ",".join(f"{name}={path}" for name, path in paths.items()), ",".join(str(paths[name]) for name in row.get("torch_inputs", []))


def renamed(row):
    """The flag that tells PyTorch's side how the model's file calls its parameters."""
    return "--rename=" + ",".join(f"{theirs}={ours}" for theirs, ours in row.get("renamed", {}).items())


def init(row):
    """Flags by which lowtide-run starts where lowtide-bench does: weights that the artifact lacks are drawn by seed 0."""
    return [] if row.get("weights") else ["--init=random:0"]


def weights_of(archive, row, data, deadline):
    """(file of the weights that ours starts from, ""), or (None, why not)."""
    folder = archive.home / "starts" / row["name"]
    command = archive.command("lowtide-run", archive.artifact(row), f"--data={data}", "--steps=0", *init(row), f"--save={folder}", "--overwrite", "--quiet")
    status, _, error = archive.run(command, deadline.left())
    found = sorted(folder.rglob("params.safetensors"))
    return (found[0], "") if status == 0 and found else (None, error.strip() or f"exit {status}")
