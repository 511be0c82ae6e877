"""Plan deployments of large language models, with proof."""
