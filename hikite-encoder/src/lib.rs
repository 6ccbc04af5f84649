//! Text to vector: a small multilingual sentence encoder, with its weights inside.
