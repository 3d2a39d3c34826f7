"""How the next token is chosen: parameters, pure steps over candidates, and the sampler that composes them."""
