"""
A convolutional net, step by step
=================================

The accuracy of a private convolutional net against the epochs of its training. All steps are released, so the
curve on public test images costs nothing. Each point has the whole plan's epsilon, not less: a fit that stops
early was planned with all steps.

The figure is of scikit-learn's 1,797 small digits, few for a private net. With ``--mnist`` the script trains the
26,010-parameter net of the TensorFlow Privacy tutorial on the 60,000 training images of MNIST instead, at
epsilon 3, which takes some minutes. It reads the folder that ``SKDP_DATA`` names::

    python examples/plot_mnist_cnn.py --mnist
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skdp import DPCNNClassifier
from skdp.datasets import fetch_mnist

parser = argparse.ArgumentParser()
parser.add_argument("--mnist", action="store_true")
of_mnist = parser.parse_known_args()[0].mnist

if of_mnist:
    train, test = (fetch_mnist(return_X_y=True, subset=part) for part in ("train", "test"))
    about = {"epsilon": 3.0, "image_shape": (28, 28), "input_range": (0, 255)}
else:
    X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
    train, test = (X, y), (X_test, y_test)
    about = {"epsilon": 8.0, "image_shape": (8, 8), "input_range": (0, 16)}

# %%
# The callback keeps the released parameters of every step.

kept = []
model = DPCNNClassifier(
    **about, classes=range(10), callback=lambda step, parameters: kept.append(parameters.astype(np.float32))
)
model.fit(*train)
print(model.privacy_)
print(f"test accuracy {model.score(*test):.4f}")

# %%
# The parameters after some of the steps, each as a model.

steps = np.unique(np.geomspace(5, len(kept), 15).astype(int))
last, scores = model.parameters_, []
for step in steps:
    model.parameters_ = kept[step - 1]
    scores.append(model.score(*test))
model.parameters_ = last

plt.plot(steps * model.batch_size_ / len(train[0]), scores, marker="o")
plt.xlabel("epochs")
plt.ylabel("test accuracy")
plt.title(f"epsilon = {model.privacy_.epsilon:g} for the whole plan")
plt.show()
