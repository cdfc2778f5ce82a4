"""`DPLogisticRegression` and `DPLinearRegression`, which choose a method by public numbers."""
