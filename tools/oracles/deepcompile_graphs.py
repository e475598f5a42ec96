"""Graphs for DeepSpeed's DeepCompile passes, made without a GPU: recorded workloads and random
ones, as torch.fx graphs over stand-ins for DeepSpeed's ops, and as rows for the C++ tests.

A row is [kind, aliases, args, param, uses, time, tensor bytes, allocated bytes, name], see KINDS.
"""

import json
import lzma
import operator
import random
from types import SimpleNamespace

import torch
from torch.fx import Graph

KINDS = ["placeholder", "op", "item", "gather", "wait", "release", "reduce", "output"]

DTYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32, "float16": torch.float16}

_LIBRARY = torch.library.Library("dc", "DEF")
for schema in (
    "allgather_param(Tensor a, int graph_id, int id, ScalarType? dtype = None) -> Tensor",
    "prefetch_params_fused(int graph_id, Tensor[] params, int[] ids, int[]? dtypes = None) -> ()",
    "wait_allgather(Tensor(a) a, int graph_id, int id) -> Tensor(a)",
    "release_param(Tensor(a) a, int graph_id, int id, int n_users) -> Tensor(a)",
    "reduce_grad(Tensor a, int graph_id, int id) -> Tensor",
    "reload_parameter(Tensor a, int id, int id2) -> ()",
):
    _LIBRARY.define(schema)


def aten(schema):
    """The operator of a schema string such as "aten::add.Tensor(Tensor self, …) -> Tensor"."""
    name = schema.split("(", 1)[0]
    namespace, rest = name.split("::")
    base, _, overload = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")


def returns_several(schema):
    """Whether an operator returns something else than one tensor."""
    return schema.split(" -> ", 1)[1].split("(", 1)[0].strip() != "Tensor"


class Case:
    """One graph before DeepSpeed's insertion: `graph`, `params` (for the pass), `grads`."""

    def __init__(self):
        self.graph = Graph()
        self.manager = SimpleNamespace(params={}, ds_ids={}, param_names=[])
        self.param_nodes = []
        self.grads = None  # name of a parameter -> node, of a backward graph
        self.op_of = {}  # name of a node -> index of the recorded op

    def declare_param(self, name, ds_id, numel, dtype):
        itemsize = torch.empty((), dtype=dtype).element_size()
        self.manager.params[name] = SimpleNamespace(
            name=name, dtype=dtype, numel=numel, bytes=numel * itemsize,
            param=SimpleNamespace(ds_persist=False, ds_shape=(numel,)))
        self.manager.ds_ids[name] = ds_id
        self.manager.param_names.append(name)

    def add_input(self, name):
        """A placeholder; of a declared parameter, when it has its name."""
        node = self.graph.placeholder(name)
        if name in self.manager.params:
            node.meta["val"] = torch.empty([0], dtype=self.manager.params[name].dtype)
            self.param_nodes.append(node)
        return node

    def add_op(self, target, args, time, several=False, items=0, keywords=None):
        """One op, and `items` of its results. Returns the nodes of its results."""
        node = self.graph.call_function(target, tuple(args), keywords)
        node.meta["device_time"] = time
        if not several:
            return [node]
        results = []
        for i in range(items):
            item = self.graph.call_function(operator.getitem, (node, i))
            item.meta["device_time"] = 0
            results.append(item)
        return results


def op_time(schema_index, schema_count):
    """A time that ops of one operator share, so that repeated layers tie: ns."""
    return 1000 + 37 * ((schema_index * 7) % schema_count)


def load_workload(folder):
    with lzma.open(f"{folder}/graph.json.xz") as file:
        return json.load(file)


def param_bytes(graph, param):
    """Bytes of a parameter of a recorded workload."""
    value = graph["values"][param["value"]]
    return int(torch.Size(value["shape"]).numel()) * DTYPES[value["dtype"]].itemsize


def _value_args(args):
    for arg in args:
        if isinstance(arg, dict) and "v" in arg:
            yield arg["v"]
        elif isinstance(arg, dict) and "vs" in arg:
            yield from (v for v in arg["vs"] if v is not None)


def workload_case(graph, index):
    """Graph `index` of a recorded workload as a Case. Parameters are primals_k, k their place
    among the forward graph's inputs; ds_id is their place in the workload."""
    subgraph = graph["graphs"][index]
    forward = graph["graphs"][subgraph.get("forward", index)]
    params = {param["value"]: i for i, param in enumerate(graph["params"])}
    case = Case()
    primals = {}
    for k, each in enumerate(forward["inputs"]):
        value = graph["values"][each["value"]]
        if each["value"] in params:
            primals[each["value"]] = f"primals_{k + 1}"
            case.declare_param(f"primals_{k + 1}", params[each["value"]],
                               int(torch.Size(value["shape"]).numel()), DTYPES[value["dtype"]])
    env = {each["value"]: case.add_input(primals.get(each["value"], f"input_{each['value']}"))
           for each in subgraph["inputs"]}
    _add_workload_ops(case, graph, subgraph, env)
    return case


def describe_values(case, graph, subgraph):
    """Gives every node of a workload's case its tensor without memory. Returns the values' names by
    the nodes'."""
    made = {each["value"]: node for each, node in zip(subgraph["inputs"], case.graph.nodes)}
    results = {node.name: list(node.users) for node in case.graph.nodes}
    by_op = {op: node for node, op in case.op_of.items()}
    nodes = {node.name: node for node in case.graph.nodes}
    for position, op in enumerate(subgraph["ops"]):
        outputs = [v for v in op["outputs"] if v is not None]
        node = nodes.get(by_op.get(position))
        items = [user for user in results.get(by_op.get(position), [])
                 if user.target is operator.getitem]
        made.update(zip(outputs, items if returns_several(graph["schemas"][op["schema"]]) else [node]))
    names = {}
    for index, node in made.items():
        value = graph["values"][index]
        names[node.name] = value["name"]
        if node not in case.param_nodes:
            node.meta["val"] = torch.empty_strided(value["shape"], value["strides"], device="meta",
                                                   dtype=getattr(torch, value["dtype"]))
    return names


def _cast_keywords(schema, args):
    """The dtype of a cast that is nothing else, as is_cast_op looks for it."""
    if not schema.startswith("aten::_to_copy(") or any(args[2:]):
        return {}
    return {"dtype": DTYPES[args[1]["dtype"]]}


def _add_workload_ops(case, graph, subgraph, env):
    schemas = graph["schemas"]
    for position, op in enumerate(subgraph["ops"]):
        schema = schemas[op["schema"]]
        outputs = [v for v in op["outputs"] if v is not None]
        several = returns_several(schema)
        nodes = case.add_op(aten(schema), [env[v] for v in _value_args(op["args"])],
                            op_time(op["schema"], len(schemas)), several, len(outputs),
                            _cast_keywords(schema, op["args"]))
        case.op_of[nodes[0].args[0].name if several and nodes else nodes[0].name] = position
        env.update(zip(outputs, nodes))
    case.graph.output(tuple(env[each["value"]] for each in subgraph["outputs"]))
    if subgraph["direction"] == "backward":
        names = {i: name for name, i in case.manager.ds_ids.items()}
        case.grads = dict.fromkeys(case.manager.param_names)
        for each in subgraph["outputs"]:
            if each["kind"] == "gradient":
                case.grads[names[each["param"]]] = env[each["value"]]


VIEWS = ["aten::t(Tensor(a) self) -> Tensor(a)", "aten::view(Tensor(a) self, SymInt[] size) -> "
         "Tensor(a)"]
BINARY = ["aten::mm(Tensor self, Tensor mat2) -> Tensor",
          "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor"]
UNARY = ["aten::relu(Tensor self) -> Tensor"]
TUPLE = "aten::native_layer_norm(Tensor input, …) -> (Tensor, Tensor, Tensor)"


def random_case(seed):
    """A random graph: chains and branches, shared parameters, views, several results, and, for odd
    seeds, gradients. Few sizes and times, so that ties are frequent."""
    dice = random.Random(seed)
    case = Case()
    sizes = [dice.choice([8, 64, 64, 512, 1000, 4096]) for _ in range(dice.randint(1, 14))]
    for i, numel in enumerate(sizes):
        case.declare_param(f"primals_{i + 1}", dice.randrange(100) * 20 + i, numel, torch.bfloat16)
        case.add_input(f"primals_{i + 1}")
    values = [case.add_input(f"tokens_{i}") for i in range(dice.randint(1, 3))]
    chain = dice.random() < 0.5
    gradients = []
    for _ in range(dice.randint(len(sizes), 4 * len(sizes) + 3)):
        values, made = _random_op(case, dice, values, chain)
        gradients += made if dice.random() < 0.3 else []
    outputs = [v for v in values if dice.random() < 0.15] or values[-1:]
    if seed % 2:
        case.grads = dict.fromkeys(case.manager.param_names)
        pool = gradients or values[-1:]
        for name in case.manager.param_names:
            if dice.random() < 0.8:
                case.grads[name] = dice.choice(pool)
        outputs = [v for v in case.grads.values() if v is not None] + outputs
    case.graph.output(tuple(outputs))
    return case


def _random_op(case, dice, values, chain):
    """Adds one op, perhaps with a parameter or a view of one. Returns values and what it made."""
    time = 10 * dice.randint(0, 4)
    first = values[-1] if chain and dice.random() < 0.8 else dice.choice(values)
    second = dice.choice(case.param_nodes if dice.random() < 0.6 else values)
    if dice.random() < 0.3:
        second = case.add_op(aten(dice.choice(VIEWS)), [second], 0)[0]
    if dice.random() < 0.15:
        made = case.add_op(aten(TUPLE), [first, second], time, True, dice.randint(1, 3))
    elif dice.random() < 0.1:
        made = case.add_op(aten(UNARY[0]), [first], time)
    else:
        args = [first, second] if dice.random() < 0.7 else [second, first]
        made = case.add_op(aten(dice.choice(BINARY)), args, time)
    return values + made, made
