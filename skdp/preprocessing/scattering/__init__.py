"""Wavelet scattering of images: fixed Morlet filters, moduli and low passes; nothing is learnt."""
