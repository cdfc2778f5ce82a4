"""Secure sums: owners' integers are shared to servers, noise is added in shares, only the noisy sum is opened.

`field` and `shamir` hold the arithmetic, `noise_shares` and `laplace_bits` the noise and its proofs, `server` and
`client` the protocol over links, `loopback` an engine that plays all parties on one machine.
"""
