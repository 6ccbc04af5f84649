//! Search with the help of others: the cloud, and models behind OpenAI-compatible addresses.
