"""Images: resampling, sampling at points, and elements that change between channels and pixels."""
