# Written by tools/make_stubs.py.

from skdp.nn.architectures import ARCHITECTURES as ARCHITECTURES
from skdp.nn.architectures import architecture as architecture
from skdp.nn.cnn import DPCNNClassifier as DPCNNClassifier
from skdp.nn.layers.avg_pool import AvgPool2D as AvgPool2D
from skdp.nn.layers.batch_norm import BatchNorm as BatchNorm
from skdp.nn.layers.conv2d import Conv2D as Conv2D
from skdp.nn.layers.dense import Dense as Dense
from skdp.nn.layers.flatten import Flatten as Flatten
from skdp.nn.layers.group_norm import GroupNorm as GroupNorm
from skdp.nn.layers.layer import Layer as Layer
from skdp.nn.layers.layer_norm import LayerNorm as LayerNorm
from skdp.nn.layers.max_pool import MaxPool2D as MaxPool2D
from skdp.nn.layers.relu import ReLU as ReLU
from skdp.nn.layers.rescaling import Rescaling as Rescaling
from skdp.nn.layers.reshape import Reshape as Reshape
from skdp.nn.layers.scaled_tanh import ScaledTanh as ScaledTanh
from skdp.nn.layers.tanh import Tanh as Tanh
from skdp.nn.losses import CrossEntropy as CrossEntropy
from skdp.nn.losses import SquaredError as SquaredError
from skdp.nn.mlp import DPMLPClassifier as DPMLPClassifier
from skdp.nn.mlp import DPMLPRegressor as DPMLPRegressor
from skdp.nn.network import Network as Network
from skdp.nn.network import Sequential as Sequential
from skdp.nn.networks import DPNetworkClassifier as DPNetworkClassifier
from skdp.nn.networks import DPNetworkRegressor as DPNetworkRegressor
from skdp.nn.products import rows_times as rows_times
