"""The local web page: review doubtful samples, look at all, label new data, try the method."""
