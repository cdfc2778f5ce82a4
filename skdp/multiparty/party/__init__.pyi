from .model import load_model as load_model
