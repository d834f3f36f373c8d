"""The policy as an ONNX graph, node by node."""

from typing import Any

import numpy as np
from gymnasium.spaces import Discrete, Space

import safeexplorer
from safeexplorer.acting.networks import OBSERVATION_CLIP, Params, activation_of

Array = np.ndarray
OPSET, IR_VERSION = 17, 8  # of 2022: old enough for the runtimes on robots


class Graph:
    """Nodes in order, and the constants they use."""

    def __init__(self, onnx: Any):
        self.onnx, self.nodes, self.constants = onnx, [], []

    def apply(self, operator: str, output: str, *inputs: str | Array, **attributes: Any) -> str:
        """Add a node; arrays among its inputs become constants. Returns the name of its output."""
        names = []
        for i, value in enumerate(inputs):
            if not isinstance(value, str):
                self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value), f"{output}.{i}"))
            names.append(value if isinstance(value, str) else f"{output}.{i}")
        self.nodes.append(self.onnx.helper.make_node(operator, names, [output], output, **attributes))
        return output


def build_model(
    onnx: Any, params: Params, action_space: Space, region: float | None, facts: dict[str, str]
) -> Any:
    """The policy, and the gate if there is a region, as an ONNX model."""
    graph, value, kinds = Graph(onnx), onnx.helper.make_tensor_value_info, onnx.TensorProto
    add_policy(graph, params, action_space)
    inputs = [value("observation", kinds.FLOAT, ["batch", params["actor"][0]["weight"].shape[0]])]
    if isinstance(action_space, Discrete):
        outputs = [value("action", kinds.INT64, ["batch"])]
    else:
        outputs = [value("action", kinds.FLOAT, ["batch", *action_space.shape])]
    if region is not None:
        inside = graph.apply("LessOrEqual", "inside", "distance", below(region))
        graph.apply("Not", "recovery_should_act", inside)
        inputs.append(value("distance", kinds.FLOAT, ["batch"]))
        outputs.append(value("recovery_should_act", kinds.BOOL, ["batch"]))
    model = onnx.helper.make_model(
        onnx.helper.make_graph(graph.nodes, "policy", inputs, outputs, graph.constants),
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="safeexplorer",
        producer_version=safeexplorer.__version__,
    )
    onnx.helper.set_model_props(model, facts)
    onnx.checker.check_model(model, full_check=True)
    return model


def add_policy(graph: Graph, params: Params, action_space: Space) -> None:
    """`policy_mean`, then the bounds of the Box or the choice among the discrete actions."""
    x = "observation"
    if "normaliser" in params:
        bound = np.float32(OBSERVATION_CLIP)
        x = graph.apply("Sub", "centred", x, params["normaliser"]["mean"])
        x = graph.apply("Div", "scaled", x, params["normaliser"]["deviation"])
        x = graph.apply("Max", "raised", x, -bound)
        x = graph.apply("Min", "normalised", x, bound)
    *hidden, last = params["actor"]
    for i, layer in enumerate(hidden):
        x = graph.apply("Gemm", f"sum_{i}", x, layer["weight"], layer["bias"])
        x = activate(graph, activation_of(layer), f"hidden_{i}", x)
    x = graph.apply("Gemm", "actor", x, last["weight"], last["bias"])
    if isinstance(action_space, Discrete):
        x = graph.apply("ArgMax", "index", x, axis=1, keepdims=0)
        graph.apply("Add", "action", x, np.int64(action_space.start))
    else:
        x = graph.apply("Max", "actor_raised", x, action_space.low.astype(np.float32))
        graph.apply("Min", "action", x, action_space.high.astype(np.float32))


def activate(graph: Graph, activation: str, output: str, x: str) -> str:
    """What follows a hidden layer; swish is x sigmoid(x)."""
    if activation == "swish":
        return graph.apply("Mul", output, x, graph.apply("Sigmoid", f"{output}.sigmoid", x))
    return graph.apply({"tanh": "Tanh", "relu": "Relu", "elu": "Elu"}[activation], output, x)


def below(radius: float) -> np.float32:
    """The largest float32 <= radius: a float32 distance is within it exactly if it is within the radius."""
    near = np.float32(radius)
    return np.nextafter(near, np.float32(-np.inf)) if float(near) > radius else near
