"""
A convolutional net at epsilon 3
================================

The accuracy of the 26,010-parameter net of the TensorFlow Privacy tutorial against the epochs of its training. The steps
are released, so the curve on public test images costs nothing. Each point has the whole plan's epsilon, not less: what
stops early was planned, too.
"""

import matplotlib.pyplot as plt
import numpy as np

from skdp import DPCNNClassifier
from skdp.datasets import fetch_mnist

X, y = fetch_mnist(return_X_y=True)
X_test, y_test = fetch_mnist(return_X_y=True, subset="test")

kept = []
model = DPCNNClassifier(
    epsilon=3.0,
    image_shape=(28, 28),
    input_range=(0, 255),
    classes=range(10),
    callback=lambda step, parameters: kept.append(parameters.astype(np.float32)),
)
model.fit(X, y)
print(model.privacy_)
print(f"test accuracy {model.score(X_test, y_test):.4f}")

# %%
# The released parameters of some steps, each as a model.

steps = np.unique(np.geomspace(10, len(kept), 15).astype(int))
last, scores = model.parameters_, []
for step in steps:
    model.parameters_ = kept[step - 1]
    scores.append(model.score(X_test, y_test))
model.parameters_ = last

epochs = steps * model.batch_size_ / len(X)
plt.plot(epochs, scores, marker="o")
plt.xlabel("epochs")
plt.ylabel("test accuracy")
plt.title(f"epsilon = {model.privacy_.epsilon:g} for the whole plan")
plt.show()
